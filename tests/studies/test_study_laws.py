"""The laws of every study: resuming, rerunning, signatures. A newly registered study is tested as soon as it has an
entry in `helpers.small.SMALL`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.comparison.base import names_of
from headscope.errors import RunError
from headscope.results.results import Results
from headscope.results.specification import Role
from headscope.studies.base import Study, Work
from helpers.changed_settings import changed, current, shows_nothing_usual, shows_what_is_changed, usual
from helpers.small import SMALL, SmallStudies
from helpers.study_laws import OTHERS, STUDIES, Headscope, refusal

# Small settings


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_small_settings(name: str, small: SmallStudies) -> None:
    assert name in SMALL, f"{name} has no small settings: add an entry to SMALL in tests/helpers/small.py"


# Resuming and rerunning


def without_timing(results: Results) -> dict[str, Any]:
    """A manifest without the values that an interruption changes: the seconds and the number of resumed shards."""
    counts = {name: number for name, number in results.manifest["counts"].items() if name != "resumed_shards"}
    return {**results.manifest, "counts": counts, "seconds": None}


def test_an_interrupted_and_resumed_study_equals_an_uninterrupted_one(
    study: Study, small: SmallStudies, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Results.open(small.folder(study.name))
    out = small.root / f"{study.name}-interrupted"
    make_work = type(study).work
    done: list[Any] = []

    def work(self: Study, spec: Any, context: Any) -> Work:
        made = make_work(self, spec, context)
        do = made.do

        def first_job(job: Any) -> Any:
            if done:
                raise KeyboardInterrupt
            done.append(job)
            return do(job)

        def no_tables(states: Any) -> Any:  # interrupts a study of one job after that job
            raise KeyboardInterrupt

        monkeypatch.setattr(made, "do", first_job)
        monkeypatch.setattr(made, "tables", no_tables)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(type(study), "work", work)
        with pytest.raises(KeyboardInterrupt):
            small.execute(study.name, out)
    with pytest.raises(RunError, match="not finished"):
        Results.open(out)
    with pytest.raises(RunError, match=r"already holds a run.*--resume"):
        small.execute(study.name, out)
    small.execute(study.name, out, resume=True)
    resumed = Results.open(out)
    assert resumed.manifest["counts"]["resumed_shards"] == 1
    assert without_timing(resumed) == without_timing(whole)
    for name in whole.manifest["files"]:
        assert (out / name).read_bytes() == (small.folder(study.name) / name).read_bytes(), name
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in small.folder(study.name).iterdir())


def test_a_finished_study_is_not_executed_again(study: Study, small: SmallStudies, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is refused. With --resume the saved results are returned."""
    with pytest.raises(RunError, match=r"already holds a run.*--overwrite"):
        small.execute(study.name, small.folder(study.name))

    make_work = type(study).work

    def never() -> None:
        raise AssertionError("a finished study is prepared again")

    def work(self: Study, spec: Any, context: Any) -> Work:
        made = make_work(self, spec, context)
        monkeypatch.setattr(made, "prepare", never)
        return made

    monkeypatch.setattr(type(study), "work", work)
    resumed = small.execute(study.name, small.folder(study.name), resume=True)
    assert resumed.manifest == Results.open(small.folder(study.name)).manifest


def test_a_rerun_is_identical(study: Study, small: SmallStudies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from another working directory than that of the study, whose paths are relative."""
    monkeypatch.chdir(tmp_path)
    found = hs.rerun(small.folder(study.name))
    assert found.identical, repr(found)
    assert found.circumstances == ()
    assert found.same.tables == len(Results.open(small.folder(study.name)))


@pytest.mark.parametrize(
    ("name", "old", "now"), [("attention_probe", "cache_bytes", "cache_limit"), ("edge_probe", "dev_limit", "limit_dev")]
)
def test_a_rerun_accepts_old_names_of_settings(name: str, old: str, now: str, small: SmallStudies, tmp_path: Path) -> None:
    """Older versions had other names for two settings, and counted one of them in bytes instead of GiB."""
    folder = small.folder(name).with_name(f"{name}-old")  # beside the files that its settings name
    shutil.copytree(small.folder(name), folder)
    manifest = json.loads((folder / "run.json").read_text())
    value = manifest["settings"].pop(now)
    del manifest["sha256"]
    manifest["settings"][old] = value if value is None or old == "dev_limit" else int(value * 2**30)
    (folder / "run.json").write_text(json.dumps(manifest))
    again = hs.rerun(folder, tmp_path / "again")
    assert again.identical, repr(again)
    assert again.now.manifest["settings"][now] == value


@pytest.mark.parametrize("kind", OTHERS)
def test_replications_and_joined_studies_cannot_be_rerun(kind: str, small: SmallStudies, headscope: Headscope) -> None:
    assert "each in its own folder" in refusal(headscope, "rerun", getattr(small, kind)())


# Signatures


def test_every_changed_setting_is_in_the_signature(study: Study) -> None:
    """A setting that is not at its default is in the signature and in the identity, unless it is neutral or hashed by
    content.
    """
    shows_nothing_usual(study.spec)
    shows_what_is_changed(study.spec)


def test_neutral_settings_do_not_appear_in_the_names_of_compared_studies(study: Study) -> None:
    """Studies that differ in the seed and in a neutral setting are named by the seed alone."""
    spec = usual(study.spec)
    others = [name for name in study.spec.model_fields if name not in spec.having(Role.NEUTRAL)]
    for name in spec.having(Role.NEUTRAL):
        field = study.spec.model_fields[name]
        both = [spec, spec.model_copy(update={name: changed(field.annotation, current(spec, name)), "seed": 7})]
        results = [Results({"study": study.name, "settings": one.model_dump(mode="json"), "identity": {}}, {}) for one in both]
        assert "seed" in others
        assert [called.split()[0] for called in names_of(results)] == ["seed", "seed"], name


def test_the_signature_shows_the_changed_settings_and_is_in_every_table(study: Study, small: SmallStudies) -> None:
    """It has a part for every setting that the small study changes."""
    results = Results.open(small.folder(study.name))
    spec = study.make(results.manifest["settings"])
    parts = dict(part.split(":", 1) for part in results.signature.split("|"))
    titles = {name: study.spec.model_fields[name].title or name for name in spec.having(Role.CONTENT)}
    assert {"headscope", "run", *(title for name, title in titles.items() if getattr(spec, name)), *spec.shown()} <= parts.keys()
    assert parts.keys() <= {"headscope", "run", "annotation", *titles.values(), *spec.shown()}
    assert all(table.metadata["signature"] == results.signature for table in results.values())
