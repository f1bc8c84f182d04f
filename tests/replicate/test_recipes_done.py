"""Replications and their folders (interrupted, resumed, refused, overwritten), missing data, and invalid recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.errors import HeadscopeError, RunError
from headscope.models.saving import is_whole
from headscope.replication import read_recipe, steps
from headscope.replication import study as studying
from headscope.replication.recipe import checked
from headscope.replication.study import by_role, corpora_by_role, replicate, usual_folder
from headscope.results.results import Results
from helpers.recipe_material import save_slice, save_small

TWO_STEPS = """
name = "Two steps"
title = "T"
authors = "A"
venue = "V"
about = "B"
[[steps]]
name = "first"
title = "First"
verb = "run"
corpus = "text"
settings = { measures = ["positions"], replicates = 10, max_length = 64 }
theirs = { model = "bert-base", data = "Wikipedia", settings = { unit = "segment" } }
figures = [{ name = "clark2", place = "Figure 2" }]
[[steps]]
name = "second"
title = "Second"
verb = "run"
corpus = "treebank"
settings = { measures = ["relations"], replicates = 10, max_length = 64 }
brief = { limit = 12 }
theirs = { model = "small", data = "PTB" }
[[claims]]
id = "next"
place = "§1"
says = "One head at least"
published = 4
expect = "above"
threshold = 0
where = { step = "first", table = "positions", rows = { quantity = "next" }, column = "value", take = "count", more_than = 0.5 }
[[claims]]
id = "all"
place = "Table 1"
says = "Better than an offset"
published = 30.0
baseline = 20.0
expect = "sign"
[claims.where]
step = "second"
table = "relations_best"
rows = { label = "all" }
column = "value"
interval = ["low", "high"]
difference_interval = ["lift_low", "lift_high"]
baseline = "baseline"
scale = 100
"""


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("material")
    return str(save_small(folder / "small")), str(save_slice(folder, sentences=3))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(TWO_STEPS, encoding="utf-8")
    return path


def run_recipe(recipe: Path, out: Path, material: tuple[str, str], **how: Any) -> Results:
    return replicate(recipe, out, model=material[0], corpora={"": [material[1]]}, device="cpu", **how)


# --- folders ---


def test_an_interrupted_replication_resumes_to_identical_claims(
    recipe: Path, material: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_recipe(recipe, tmp_path / "whole", material)
    original = steps.do
    seen: list[str] = []

    def until_the_second(context: Any, step: Any, *rest: Any) -> Any:
        seen.append(step.name)
        if step.name == "second":
            raise KeyboardInterrupt
        return original(context, step, *rest)

    monkeypatch.setattr(studying, "do", until_the_second)
    with pytest.raises(KeyboardInterrupt):
        run_recipe(recipe, tmp_path / "again", material)
    assert seen == ["first", "second"]
    monkeypatch.setattr(studying, "do", original)
    first = (tmp_path / "again" / "first" / "run.json").stat().st_mtime_ns
    with pytest.raises(RunError, match="already holds a replication"):
        run_recipe(recipe, tmp_path / "again", material)
    with pytest.raises(RunError, match="not finished"):
        Results.open(tmp_path / "again")
    resumed = run_recipe(recipe, tmp_path / "again", material, resume=True)
    assert (tmp_path / "again" / "first" / "run.json").stat().st_mtime_ns == first  # opened, not executed again
    assert resumed["claims"].to_parquet() == whole["claims"].to_parquet()
    again = run_recipe(recipe, tmp_path / "again", material, resume=True)
    assert again["claims"].to_text("json") == whole["claims"].to_text("json")


def test_other_folders_are_refused_and_other_files_are_kept(recipe: Path, material: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "novel.txt").write_text("Chapter 1")
    with pytest.raises(RunError, match=r"not empty and not a run folder \(it contains novel.txt\)"):
        run_recipe(recipe, tmp_path / "mine", material)
    hs.run(material[0], material[1], ["positions"], tmp_path / "run", limit=2, replicates=0, device="cpu")
    with pytest.raises(RunError, match="holds a run or another study"):
        run_recipe(recipe, tmp_path / "run", material, overwrite=True)
    run_recipe(recipe, tmp_path / "ours", material)
    recipe.write_text(TWO_STEPS.replace("limit = 12", "limit = 11"))
    with pytest.raises(RunError, match="started with other settings"):
        run_recipe(recipe, tmp_path / "ours", material, resume=True)
    mine = tmp_path / "ours" / "first" / "tables" / "mine.parquet"
    mine.write_text("mine")
    assert run_recipe(recipe, tmp_path / "ours", material, overwrite=True)["steps"]["texts"][1] == 11
    assert mine.read_text() == "mine"
    (tmp_path / "ours" / "second").rename(tmp_path / "elsewhere")
    (tmp_path / "ours" / "second").symlink_to(tmp_path / "elsewhere")
    before = sorted(path.name for path in (tmp_path / "elsewhere").rglob("*"))
    with pytest.raises(RunError, match=r"ours/second is a symbolic link"):
        run_recipe(recipe, tmp_path / "ours", material, overwrite=True)
    assert sorted(path.name for path in (tmp_path / "elsewhere").rglob("*")) == before


def test_a_cleared_step_has_no_loadable_model_and_keeps_other_files(recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    for name in ("config.json", "training.json", "mine.txt"):
        (folder / name).write_text("{}")
    steps.clear(steps.StepContext("two", read_recipe(recipe)[0], "mini", {}, tmp_path))
    assert sorted(path.name for path in folder.iterdir()) == ["mine.txt", "training.json"]
    assert not is_whole(folder)


def test_overwriting_leaves_no_old_step_after_an_interruption(
    recipe: Path, material: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replication is overwritten with other settings, interrupted and resumed. Step 2 has the new settings."""
    run_recipe(recipe, tmp_path / "out", material)
    recipe.write_text(TWO_STEPS.replace("limit = 12", "limit = 5"))
    original = steps.do

    def never(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(studying, "do", never)
    with pytest.raises(KeyboardInterrupt):
        run_recipe(recipe, tmp_path / "out", material, overwrite=True)
    monkeypatch.setattr(studying, "do", original)
    assert run_recipe(recipe, tmp_path / "out", material, resume=True)["steps"]["texts"] == [18, 5]


def test_a_step_without_its_annotation_is_skipped_and_reported(recipe: Path, material: tuple[str, str], tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("The cat sat on the mat.\nThe dog ran home.\n")
    results = replicate(recipe, tmp_path / "out", model=material[0], corpora={"": [str(plain)]}, device="cpu")
    assert results["steps"]["done"] == [True, False]
    claim = results["claims"].where(id="all")
    assert (claim["verdict"], claim["ours"]) == (["not done"], ["–"])
    assert claim["why"] == [f"relations needs trees, and {plain} has none"]
    assert results["claims"].where(id="next")["verdict"] != ["not done"]
    assert any(note.startswith("Second: not done: relations needs trees") for note in results.manifest["notes"])


def test_a_missing_corpus_is_refused_before_anything_is_written(recipe: Path, material: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match="nowhere"):
        replicate(recipe, tmp_path / "out", model=material[0], corpora={"treebank": ["nowhere.conllu"]}, device="cpu")
    assert not (tmp_path / "out").exists()


def test_rows_state_how_model_data_and_settings_differ(recipe: Path, material: tuple[str, str], tmp_path: Path) -> None:
    results = run_recipe(recipe, tmp_path / "out", material)
    first, second = results["claims"]["differs"]
    assert first == "model: small, not bert-base; data: slice.conllu (18 texts), not Wikipedia; unit: sentence, not segment"
    assert (
        second == "data: slice.conllu (12 texts), not PTB; shortened: texts 12 (--full removes the limits)"
    )  # the model has the same name as theirs
    full = run_recipe(recipe, tmp_path / "full", material, full=True)
    assert full["claims"]["differs"][1] == "data: slice.conllu (18 texts), not PTB"


def test_the_command_and_python_give_the_same_claims(
    recipe: Path, material: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(app, ["replicate", str(recipe), "--model", material[0], "--corpus", f"text={material[1]}", "--device", "cpu"])
    assert run.exit_code == 0, run.output
    folder = Path("runs") / "two-small-slice"
    assert (folder / "report.html").is_file()
    assert "One head at least" in run.output
    assert "step 2 of 2: Second" in run.output
    assert "what differs" in run.output
    assert "sampler" in run.output  # the default for the treebank, which is not named
    shown = CliRunner().invoke(app, ["show", str(folder)])
    assert "Better than an offset" in shown.output
    study = hs.open_study(folder)
    assert study["claims"]["id"] == ["next", "all"]
    assert "Of 2 claims" in str(study)
    again = hs.replicate(recipe, material[0], {"text": material[1]}, folder, device="cpu", resume=True)
    assert again["claims"].to_text("csv") == study["claims"].to_text("csv")
    with pytest.raises(RunError, match="replication of several steps"):
        hs.rerun(folder)
    assert hs.open_run(folder / "first").measures == ["positions"]
    assert study.report(tmp_path / "page.html").read_text(encoding="utf-8").count('id="claim-') == 2


# --- user-defined recipes ---


def test_corpora_are_assigned_to_roles_and_folders_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b.conllu").touch()
    assert corpora_by_role(["treebank=x.conllu", "y.txt", "treebank=z.conllu", "a=b.conllu"]) == {
        "treebank": ["x.conllu", "z.conllu"],
        "": ["y.txt", "a=b.conllu"],
    }
    recipe = read_recipe("michel2019")[0]
    assert by_role(recipe, {"": ["a"], "pairs": ["b"]}) == {"labelled": ("a",), "pairs": ("b",)}  # the role labelled-other must be named
    with pytest.raises(RunError, match=r"no role 'treebnk'.*Roles are labelled"):
        by_role(recipe, {"treebnk": ["a"]})
    assert usual_folder("x/my.toml", "./models/sst2", {"": ["d/en.conllu.xz"]}) == Path("runs/my-sst2-en")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ('verb = "run"', 'verb = "walk"'),
            r"verb = 'walk': unknown kind of step 'walk': use one of run, train, flow",
        ),
        (('place = "§1"', 'palce = "§1"'), r"two\.toml: claims\.next\.(place is missing|palce: there is no such key)"),
        (('expect = "above"\nthreshold = 0', 'expect = "above"'), r"next: expect = \"above\" needs threshold"),
        (('where = { step = "first"', 'where = { step = "frist"'), r"claim next: there is no step 'frist'"),
        (('id = "all"', 'id = "next"'), r"two claims are called 'next'"),
        (('name = "second"', 'name = "first"'), r"two steps are called 'first'"),
        (("published = 30.0", 'published = "many"'), r"two\.toml: claims\.all\.published = 'many'"),
        (("more_than = 0.5", "n = 'n'"), r"more_than goes with take"),
        (('id = "all"', 'id = "all"\nsame_as = "nxet"'), r"claim all: same_as = 'nxet' is not a claim"),
        (('difference_interval = ["lift_low", "lift_high"]\n', ""), r"all: a sign beside a baseline needs difference_interval"),
        (('name = "Two steps"', "name = "), r"two\.toml is not a TOML file"),
        (
            ("replicates = 10, max_length = 64 }\nbrief", "replicats = 10 }\nbrief"),
            r"step second of Two steps: .*there is no setting 'replicats'",
        ),
        (('["relations"]', '["relatoins"]'), r"step second of Two steps: .*relatoins"),
        (('"clark2"', '"clark7"'), r"step first of Two steps: figure 'clark7' is unknown"),
    ],
)
def test_invalid_recipes_are_refused_and_nothing_is_written(
    change: tuple[str, str], said: str, recipe: Path, material: tuple[str, str], tmp_path: Path
) -> None:
    text = TWO_STEPS.replace(*change, 1)
    assert text != TWO_STEPS
    recipe.write_text(text, encoding="utf-8")
    with pytest.raises(HeadscopeError, match=said):
        run_recipe(recipe, tmp_path / "out", material)
    assert not (tmp_path / "out").exists()


def test_unknown_recipes_are_refused_with_the_known_names() -> None:
    with pytest.raises(RunError, match=r"no recipe 'clark'.*clark2019, hewitt2019"):
        read_recipe("clark")
    with pytest.raises(RunError, match="there is no such file"):
        read_recipe("nowhere.toml")


def test_each_case_of_a_claim_becomes_a_claim() -> None:
    base: dict[str, Any] = {
        "id": "a-{x}",
        "place": "p",
        "says": "of {x}",
        "expect": "within",
        "where": {"step": "s", "table": "t", "column": "c"},
    }
    base["where"]["rows"] = {"label": "{x}", "layer": "{n}", "kind": "encoder"}
    base["cases"] = [{"x": "det", "n": 3, "published": 1.5}, {"x": "obj", "n": 4, "published": 2, "rows": {"kind": "cross"}}]
    step = {"name": "s", "title": "S", "verb": "run", "corpus": "text", "theirs": {"model": "m", "data": "d"}}
    about = {name: name for name in ("name", "title", "authors", "venue", "about")}
    one, two = checked({**about, "steps": [step], "claims": [base]}, "here").claims
    assert (one.id, one.says, one.published) == ("a-det", "of det", 1.5)
    assert one.where is not None
    assert two.where is not None
    assert one.where.rows == {"label": "det", "layer": 3, "kind": "encoder"}
    assert two.where.rows == {"label": "obj", "layer": 4, "kind": "cross"}
