"""The documentation: its Python examples run, and every quantity, option, table and command is documented."""

from __future__ import annotations

import inspect
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import headscope as hs
from headscope.cli.main import app
from headscope.core.heads import HeadLayout
from headscope.measures import REGISTRY, make
from headscope.studies.twins.heads import TABLES
from helpers.pages import FROM_THE_READER, README, ROOT, python_of

COMMON = {"kind", "layer", "head", "quantity", "value", "n"}  # columns shared by all tables


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = python_of(README)
    monkeypatch.chdir(tmp_path)
    exec(FROM_THE_READER + code, {})
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert (tmp_path / "figure4.pdf").exists()
    assert len([line for line in code.splitlines() if line.strip()]) <= 12


def test_the_export_example_runs_and_returns_the_measured_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    (code,) = python_of(ROOT / "docs" / "runs.md")
    monkeypatch.chdir(tmp_path)
    maps = np.random.default_rng(0).dirichlet(np.ones(3), (2, 2, 3))
    heads = hs.measure(maps, ["[CLS]", "a", "[SEP]"], ["tokens"], out="RUN")["tokens"].table
    *lines, last = code.strip().splitlines()
    names: dict[str, Any] = {}
    exec("\n".join([*lines[:-3], *(f"{name} = {line}" for name, line in zip("abc", lines[-3:], strict=True)), last]), names)
    to_sep = maps[..., 2].mean(-1)
    assert names["a"].tolist() == pytest.approx(to_sep.mean(1), rel=1e-6)
    assert names["b"]["value"].to_list() == pytest.approx(np.sort(to_sep, axis=None)[:0:-1], rel=1e-6)
    assert names["c"].fetchall() == [(layer, pytest.approx(value, rel=1e-6)) for layer, value in enumerate(to_sep.max(1), 1)]
    assert Path("to_sep.tex").read_text() == heads.where(quantity="to_sep").sort("value", descending=True).head(3).to_text("latex")


def test_every_quantity_is_documented() -> None:
    text = (ROOT / "docs" / "quantities.md").read_text(encoding="utf-8")
    run = hs.measure(np.full((1, 1, 3, 3), 0.3), ["[CLS]", "a", "[SEP]"])
    for measure in run.measures:
        for quantity in set(run[measure].table["quantity"]):
            assert f"`{quantity}`" in text, quantity
    for measure in REGISTRY:
        assert f"## {measure}" in text
        for option in make(measure).options():
            assert f"`{option}" in text, option


def test_every_quantity_of_distances_is_documented() -> None:
    _, _, section = (ROOT / "docs" / "quantities.md").read_text(encoding="utf-8").partition("\n## distances\n")
    section = section.partition("\n## ")[0]
    results = hs.measure(np.random.default_rng(0).dirichlet(np.ones(3), (2, 2, 3)), ["a", "b", "c"], ["distances"]).results
    tables = [name for name in results if name.startswith("distances")]
    assert len(tables) == 4
    for term in (
        *tables,
        *results["distances"]["quantity"],
        *results["distances_structure"]["quantity"],
        *results["distances_pairs"].columns[1:3],
    ):
        assert f"`{term}`" in section, term


def test_the_python_of_the_page_on_similar_heads_runs() -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "alike.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    names: dict[str, object] = {"hs": hs}
    exec(code.group(1).replace('"entropy"])', '"entropy"], limit=20, replicates=5)'), names)
    assert len(names["run"].results["distances_pairs"]) == 144 * 143 // 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", ["plot", "alike"])
def test_every_option_named_on_the_page_on_similar_heads_exists(verb: str) -> None:
    text = (ROOT / "docs" / "alike.md").read_text(encoding="utf-8")
    command = next(one for one in app.registered_commands if one.callback is not None and one.callback.__name__ == verb)
    assert command.callback is not None
    known = {f"--{name}" for name in inspect.signature(command.callback).parameters}
    named = set(re.findall(rf"headscope {verb} RUN.*?(--\w+)", text))
    assert named
    assert named <= known


def test_twins_are_documented() -> None:
    """The section lists every option of the command and every column and quantity of the tables; its methods exist."""
    _, _, section = (ROOT / "docs" / "alike.md").read_text(encoding="utf-8").partition("\n## Twins in another model\n")
    section = section.partition("\n## ")[0]
    command = get_command(app).commands["twins"]  # type: ignore[attr-defined]
    flags = [name for option in command.params for name in option.opts if name.startswith("--") and not getattr(option, "hidden", False)]
    assert {"--epsilon", "--pairs", "--settings"} < {*flags}
    for flag in flags:
        assert flag == "--corpus" or f"`{flag}`" in section, flag
    assert "--corpus" in section
    found = hs.twins("mini", hs.load("mini", random=0), limit=2, replicates=0, control=True, epsilons=(0.05,))
    for table in TABLES:
        assert f"`{table}`" in section
        assert set(found.table(table).columns) - COMMON <= set(re.findall(r"`(\w+)`", section)), table
    for table in ("twins_layers", "twins_summary"):
        for quantity in found.table(table)["quantity"]:
            assert f"`{quantity}`" in section, quantity
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    for method in re.findall(r"found\.(\w+)\(", code.group(1)):
        assert hasattr(found, method), method


def test_every_column_of_the_best_heads_is_documented() -> None:
    text = (ROOT / "docs" / "quantities.md").read_text(encoding="utf-8")
    run = hs.run("mini", "sampler", ["relations"], limit=2, replicates=0)
    for name in ("relations", "relations_best"):
        for column in run.results[name].columns:
            assert f"`{column}`" in text, column


@pytest.mark.parametrize("name", ["coreference", "pronouns"])
def test_options_labels_and_tables_of_measures_of_mentions_are_documented(name: str) -> None:
    text = (ROOT / "docs" / "quantities.md").read_text(encoding="utf-8")
    _, _, section = text.partition(f"\n## {name}\n")
    measure = make(name)
    for term in (*measure.options(), "all", *(("pronoun", "proper", "nominal") if name == "coreference" else ("feminine", "masculine"))):
        assert f"`{term}" in section.partition("\n## ")[0], term
    for table in measure.tables(measure.start(HeadLayout(()), 0), HeadLayout(())):
        assert table == name or f"`{table}`" in section, table


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "docs" / "api").glob("*.md")))
def test_the_example_of_an_api_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example runs on six texts, which takes about a second."""
    (code,) = python_of(ROOT / "docs" / "api" / f"{name}.md")
    monkeypatch.chdir(tmp_path)
    for verb in ("run", "plan"):
        monkeypatch.setattr(hs, verb, partial(getattr(hs, verb), limit=6), raising=False)
    exec(code.replace("limit=120", "limit=6"), {})
    for written in re.findall(r'(?:out=|save\(|savefig\(|to_csv\(|report\()"([^"]+)"', code):
        assert (tmp_path / written).exists(), written


def test_every_command_is_in_the_decision_tree() -> None:
    text = (ROOT / "docs" / "which.md").read_text(encoding="utf-8")
    verbs = get_command(app).commands  # type: ignore[attr-defined]
    assert [name for name in verbs if f"`headscope {name} " not in text and f"`headscope {name}`" not in text] == []


def test_the_makefile_has_every_target_named_in_the_readme() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^ {4})make ([\w-]+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test", "lint", "bench"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
