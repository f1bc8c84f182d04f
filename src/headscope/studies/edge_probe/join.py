"""Join studies of several corpora into one, so that figures show tasks of different corpora together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headscope.engine.opening import look_first
from headscope.errors import RunError
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import key, versions
from headscope.results.table import Table
from headscope.studies.edge_probe import EdgeProbeStudy
from headscope.studies.edge_probe.summary import ordered, summary


def joined(studies: Sequence[Results], out: Path | None = None, overwrite: bool = False) -> Results:
    """The tables of all studies, concatenated, with tasks in the order of their layers; written to `out` if given."""
    if len(studies) < 2:
        raise RunError("only one study was named, and joining needs two", "Name two or more")
    for study in studies:
        if study.study != EdgeProbeStudy.name:
            raise RunError(f"{study.path} is not a study by edge probing", "Name folders written by headscope probe edge")
    if len({study.manifest["identity"]["model"] for study in studies}) > 1:
        raise RunError("the studies are of different models", "Join those of one model; put others on one page with headscope report")
    tasks = [task for study in studies for task in study["summary"]["task"]]
    if twice := sorted({task for task in tasks if tasks.count(task) > 1}):
        raise RunError(f"{twice[0]} is in more than one of the studies", "Join studies of different tasks")
    signature = _signature(studies)
    folder = Folder(out) if out is not None else None
    if folder is not None:
        look_first(folder, False, overwrite)
    tables = {name: _stacked([study[name] for study in studies], signature) for name in studies[0]}
    tables["edge_tasks"] = ordered(tables["edge_tasks"])
    tables["summary"] = summary(tables["edge_tasks"])
    manifest = _manifest(studies, tasks, list(tables), signature)
    if folder is not None:
        with folder.locked():
            folder.clear()
            folder.finish(tables, {}, manifest)
    return Results(manifest, tables, out, states={})


def _stacked(tables: Sequence[Table], signature: str) -> Table:
    """The concatenated tables; a table without rows may lack columns."""
    filled = [table.arrow for table in tables if len(table)] or [tables[0].arrow]
    whole = pa.concat_tables([arrow.replace_schema_metadata(None) for arrow in filled], promote_options="permissive")
    return Table(whole.replace_schema_metadata({"signature": signature}))


def _signature(studies: Sequence[Results]) -> str:
    """The signature: each study's corpus, and one hash of all."""
    parts = [part for study in studies for part in study.signature.split("|")]
    corpora = dict.fromkeys(part for part in parts if part.startswith("corpus:"))
    model = next(part for part in parts if part.startswith("model:"))
    whole = key({"joined": [study.signature for study in studies]})[:8]
    return "|".join([f"headscope:{versions()['headscope']}", model, *corpora, f"joined:{len(studies)} studies", f"run:{whole}"])


def _manifest(studies: Sequence[Results], tasks: Sequence[str], tables: Sequence[str], signature: str) -> Mapping[str, Any]:
    first = studies[0].manifest
    counts = {name: sum(study.manifest["counts"].get(name, 0) for study in studies) for name in first["counts"]}
    return {
        **{name: first[name] for name in ("study", "identity", "capture", "sites", "status")},
        "signature": signature,
        "settings": {
            **first["settings"],
            "tasks": list(tasks),
            "corpus": [name for s in studies for name in s.manifest["settings"]["corpus"]],
        },
        "tables": list(tables),
        "measures": {EdgeProbeStudy.name: {"tasks": list(tasks)}},
        "counts": counts,
        **{
            name: list(dict.fromkeys(line for study in studies for line in study.manifest.get(name, ())))
            for name in ("warnings", "read", "dropped")
        },
        "notes": [
            *(line for study in studies for line in study.manifest.get("notes", ())),
            *(f"joined: {study.signature.replace('|', ' | ')}" for study in studies),
        ],
        "seconds": round(sum(study.manifest.get("seconds", 0.0) for study in studies), 3),
    }
