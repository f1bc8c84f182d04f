"""A replication: every step of a recipe, a verdict on every claim, and tables of both."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from headscope.core.paths import default_folder, kind_of
from headscope.core.suggest import choose_from
from headscope.core.wording import number_of
from headscope.corpora import read
from headscope.corpora.files import joint_hash
from headscope.engine.opening import prepare
from headscope.errors import HeadscopeError, RunError
from headscope.replication.recipe import NONE, Claim, Recipe, Step, read_recipe
from headscope.replication.steps import StepContext, check_settings, clear, do
from headscope.replication.verdicts import DATA, DIFFERS, VERDICTS, judge, row
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import identity, origin_of, signature
from headscope.results.specification import Role, Specification
from headscope.results.table import Table

if TYPE_CHECKING:
    from headscope.engine.shards import Progress
    from headscope.models.loading.in_memory import ModelInMemory
    from headscope.models.model import Model

STUDY = "replication"
Watch = Callable[[int, int, str], "AbstractContextManager[Progress | None]"]
_ROLE = re.compile(r"([a-z][a-z-]*)=(.+)", re.DOTALL)


class ReplicationSpec(Specification):
    """The settings of a replication; `corpus` are the files of all roles."""

    recipe: Annotated[str, Role.CONTENT]
    model: Annotated[str, Role.CONTENT] = "mini"
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = ()
    full: bool = False


def replicate(
    name: str | Path,
    out: Path,
    *,
    model: Model | ModelInMemory | str = "mini",
    corpora: Mapping[str, Sequence[str]] | None = None,
    device: str | None = None,
    full: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> Results:
    """The results of a replication: all steps of a recipe and a verdict on each claim, written to the folder `out`,
    which has one folder per step.

    `corpora` are files by role; those under "" replace the embedded corpus. `watch` is called for each step and returns
    a context with its progress. Steps that cannot be done on the given data are listed.
    """
    recipe, digest = read_recipe(name)
    by_role_given = by_role(recipe, corpora or {})
    folder = Folder(out)
    _look_first(folder, resume, overwrite)
    folder.refuse_links(step.name for step in recipe.steps)
    context = StepContext(Path(name).stem, recipe, model, by_role_given, out, device, full)
    for step in recipe.steps:
        check_settings(context, step)
    hashes = {role: read(*paths).hash() for role, paths in context.used().items()}
    loaded = context.loaded(recipe.steps[0].model_copy(update={"model": None}), head=False)
    paths = dict.fromkeys(path for files in context.used().values() for path in files)
    spec = ReplicationSpec(recipe=context.name, model=context.model_name, corpus=tuple(paths), full=full)
    contents = {"recipe": digest, "model": loaded.fingerprint, "corpus": joint_hash(sorted(set(hashes.values())))}
    now = identity(spec, loaded.device.type, contents) | origin_of(loaded.origin)
    now["settings"]["by_role"] = hashes
    with folder.locked():
        finished = prepare(folder, now, resume, overwrite)
        if not resume:
            clear(context)
        return (
            finished if finished is not None else _run_steps(context, folder, now, signature(spec, now), loaded, resume, overwrite, watch)
        )


def by_role(recipe: Recipe, corpora: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Files for each role; files without a role replace the embedded corpus wherever it would be used."""
    if unknown := [role for role in corpora if role and role not in recipe.roles]:
        raise RunError(f"{recipe.name} has no role {unknown[0]!r} for a corpus", choose_from(unknown[0], recipe.roles, "Roles are"))
    everywhere = {step.corpus: tuple(corpora[""]) for step in recipe.steps if step.default != NONE} if corpora.get("") else {}
    return {**everywhere, **{role: tuple(paths) for role, paths in corpora.items() if role and paths}}


def _look_first(folder: Folder, resume: bool, overwrite: bool) -> None:
    """Raise an error for a folder that has other files or results, before a model is loaded."""
    folder.refuse_others()
    if not folder.manifest.exists():
        return
    manifest = folder.read_manifest()
    if manifest.get("study") != STUDY:
        raise RunError(f"{folder.path} holds a run or another study", "Choose another folder with --out")
    if not resume and not overwrite:
        remedy = "Use --resume to continue it, --overwrite to replace it, or another --out"
        raise RunError(f"{folder.path} already holds a replication", remedy)


def _run_steps(
    context: StepContext,
    folder: Folder,
    now: dict[str, Any],
    line: str,
    model: Model,
    resume: bool,
    overwrite: bool,
    watch: Watch | None,
) -> Results:
    started = time.monotonic()
    recipe = context.recipe
    used = {role: list(paths) for role, paths in context.used().items()}
    paths = list(dict.fromkeys(path for files in used.values() for path in files))
    manifest: dict[str, Any] = {
        "study": STUDY,
        "signature": line,
        "settings": {"model": context.model_name, "corpus": paths, "roles": used, "full": context.full},
        "identity": now,
        "capture": model.capture,
        "paper": recipe.model_dump(mode="json", include={"name", "title", "authors", "year", "venue", "about"}),
    }
    folder.write_manifest({"status": "running", **manifest})
    done: dict[str, Results] = {}
    reasons: dict[str, str] = {}
    for number, step in enumerate(recipe.steps, 1):
        with watch(number, len(recipe.steps), step.title) if watch is not None else nullcontext() as progress:
            _one(context, step, done, reasons, resume, overwrite, progress)
    claims = []
    for claim in recipe.claims:
        outcome = judge(claim, done, reasons)
        claims.append(row(claim, outcome, differing(context, claim, done), recipe.repeats.get(claim.id, "")))
    signed = {"signature": manifest["signature"]}
    tables = {
        "claims": Table.from_rows(claims, metadata=signed),
        "steps": Table.of(_steps(context, done, reasons), signed),
    }
    complete = {
        **manifest,
        "status": "complete",
        "tables": list(tables),
        "measures": {STUDY: {"recipe": recipe.name}},
        "sites": [{"kind": s.kind, "layer": s.layer + 1, "heads": s.heads, "kv_heads": s.kv_heads} for s in model.layout.sites],
        "counts": {"steps": len(done), "claims": len(claims)},
        "warnings": list(dict.fromkeys(line for results in done.values() for line in results.warnings)),
        "dropped": [],
        "findings": sentences(tables["claims"]),
        "notes": [f"{recipe.step(name).title}: not done: {why}" for name, why in reasons.items()],
        "figures": {step.name: [figure.model_dump() for figure in step.figures] for step in recipe.steps},
        "seconds": round(time.monotonic() - started, 3),
    }
    folder.finish(tables, {}, complete)
    return Results(complete, tables, folder.path, states={})


def _one(
    context: StepContext,
    step: Step,
    done: dict[str, Results],
    reasons: dict[str, str],
    resume: bool,
    overwrite: bool,
    progress: Progress | None,
) -> None:
    """Do a step, or record why it cannot be done; a full disk ends the replication, a corpus without data does not."""
    if step.model in reasons:
        reasons[step.name] = f"{context.recipe.step(step.model or '').title} was not done"
        return
    try:
        results = do(context, step, resume, overwrite, progress)
    except HeadscopeError as error:
        if isinstance(error.__cause__, OSError):
            raise
        reasons[step.name] = error.problem
        return
    if results is not None:
        done[step.name] = results


def _steps(context: StepContext, done: Mapping[str, Results], reasons: Mapping[str, str]) -> dict[str, list[Any]]:
    """One row per step."""
    columns: dict[str, list[Any]] = {name: [] for name in ("step", "title", "verb", "done", "why", "texts", "seconds", "signature")}
    for step in context.recipe.steps:
        results = done.get(step.name)
        manifest: Mapping[str, Any] = results.manifest if results is not None else {}
        cells = {
            **{"step": step.name, "title": step.title, "verb": step.verb},
            **{"done": step.name not in reasons, "why": reasons.get(step.name, "")},
            **{"texts": manifest.get("counts", {}).get("texts"), "seconds": manifest.get("seconds")},
            "signature": manifest.get("signature", ""),
        }
        for name, cell in cells.items():
            columns[name].append(cell)
    return columns


def sentences(claims: Table) -> list[str]:
    """The outcome of all claims in words, naming those that differ; data and repeated numbers do not count."""
    counting = [row for row in claims if row["verdict"] != DATA and not row["repeats"]]
    counts = Counter(row["verdict"] for row in counting)
    wording = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    data = sum(row["verdict"] == DATA for row in claims)
    rest = {"properties of the data": data, "rows that repeat a number of another row": len(claims) - len(counting) - data}
    left = ", ".join(f"{number} {name}" for name, number in rest.items() if number)
    lines = [f"Of {number_of(len(counting), 'claim')}: {wording}." + (f" Not counted: {left}." if left else "")]
    lines += [
        f"Differs: {row['says']} ({row['place']}: {row['published']}; here {row['ours']})." for row in counting if row["verdict"] == DIFFERS
    ]
    lines.append(
        "Data, model and settings differ from the paper's, as each row says. A verdict is about direction; equal numbers from other data "
        "do not make a replication."
    )
    return lines


_SPOKEN = {
    "limit": "texts", "limit_dev": "test texts", "items": "pairs", "seeds": "seeds", "epochs": "epochs",
    "replicates": "bootstrap replicates", "checks": "checks during training", "orders": "random orders",
}  # fmt: skip


def differing(context: StepContext, claim: Claim, done: Mapping[str, Results]) -> str:
    """The differences of a claim's steps, each once, and the recipe's remark on this claim."""
    lines: list[str] = []
    for name in dict.fromkeys(place.step for place in claim.places):
        if name in done:
            lines += [part for part in step_differs(context, context.recipe.step(name), done[name]) if part not in lines]
    return "; ".join([*lines, *([claim.differs] if claim.differs else [])])


def step_differs(context: StepContext, step: Step, results: Results) -> list[str]:
    """The differences between a step and the paper."""
    theirs, manifest = step.theirs, results.manifest
    model = Path(context.model_name).name
    lines = [] if model.casefold() == theirs.model.casefold() else [f"model: {model}, not {theirs.model}"]
    if step.model is not None:
        lines = [f"model: {model}, trained here, not {theirs.model}"]
    texts = manifest.get("counts", {}).get("texts")
    names = ", ".join(Path(name).name for name in context.corpus(step) or ())
    lines.append(f"data: {names} ({texts:,} texts), not {theirs.data}" if texts else f"data: {names}, not {theirs.data}")
    settings: Mapping[str, Any] = manifest["settings"]
    for name, value in theirs.settings.items():
        if name in settings and _plain(settings[name]) != _plain(value):
            lines.append(f"{name}: {_said(settings[name])}, not {_said(value)}")
    brief = {} if context.full else {name: value for name, value in step.brief.items() if name != "limit" or (texts or 0) >= value}
    if brief:
        wording = ", ".join(f"{_SPOKEN.get(name, name)} {_said(value)}" for name, value in brief.items())
        lines.append(f"shortened: {wording} (--full removes the limits)")
    return lines


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _said(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def corpora_by_role(corpora: Sequence[str]) -> dict[str, list[str]]:
    """`treebank=a.conllu` and `b.conllu` as files by role; "" is the role of a file that is given without one."""
    files: dict[str, list[str]] = {}
    for text in corpora:
        parted = _ROLE.fullmatch(text) if kind_of(text) in ("missing", "unusable") else None
        role, path = parted.groups() if parted is not None else ("", text)
        files.setdefault(role, []).append(path)
    return files


def usual_folder(recipe: str | Path, model: str, corpora: Mapping[str, Sequence[str]]) -> Path:
    """The folder of the results, if no --out is given."""
    first = next((paths[0] for paths in corpora.values() if paths), "sampler")
    return default_folder(str(recipe), model, first)
