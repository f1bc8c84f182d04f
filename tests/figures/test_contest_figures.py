"""Figures and report sections of heads as classifiers."""

from __future__ import annotations

import io
from html import unescape
from pathlib import Path

import matplotlib
import pyarrow as pa
import pytest
from matplotlib.text import Text
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.cli.run import _settings
from headscope.drawing.theme import render
from headscope.errors import HeadscopeWarning, RunError
from headscope.figures import draw
from headscope.report import page
from headscope.report.contests import contests
from headscope.results.notes import choice_note
from headscope.results.results import Results
from headscope.results.table import Table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    hs.run("mini", "sampler", ["relations", "coreference", "pronouns"], out, limit=60, replicates=20, gallery=0)
    return out


@pytest.fixture(scope="module")
def run(folder: Path) -> hs.api.Run:
    return hs.open_run(folder)


def test_table_1_shows_each_relation_with_its_count_and_is_reproducible(run: hs.api.Run) -> None:
    svg = render(draw("table1", run.results), "svg").decode()
    best = run.results["relations_best"]
    for label, n in zip(best["label"], best["n"], strict=True):
        assert f"{label}  ({n:,})" in svg
    assert "best head, chosen on other documents" in svg
    assert "dep → head" in svg
    assert svg == render(draw("table1", run.results), "svg").decode()


def test_table_2_has_the_rows_of_the_paper_and_the_direction_of_each_head(run: hs.api.Run) -> None:
    figure = draw("table2", run.results)
    assert [axes.get_title(loc="left").split()[0] for axes in figure.axes] == ["all", "pronoun", "proper", "nominal"]
    (one,) = run.results["coreference_systems"].where(system="one head", label="all", direction="mention-to-antecedent")
    rows = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert rows[:3] == ["Nearest", "Head match", "Rule-based"]
    assert rows[3:] == [f"One head: {one['heads']}\nmention → antecedent", "Best head of each kind\nmention → antecedent"]
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written[written.index("ours") : written.index("paper") + 6][3:5] == [
        f"{100 * run.results['coreference_rules'].where(rule='sieves', label='all')['value'][0]:.0f}",
        f"{100 * one['value']:.0f}",
    ]
    assert written[written.index("paper") + 1 :] == ["27", "52", "69", "65", "–"]
    other = render(draw("table2", run.results, direction="antecedent-to-mention"), "svg").decode()
    assert "antecedent → mention" in other
    with pytest.raises(RunError, match="direction is 'up'"):
        draw("table2", run.results, direction="up")
    with pytest.raises(RunError, match="table1 has no option direction"):
        draw("table1", run.results, direction="antecedent-to-mention")
    earlier = Results(run.results.manifest, {name: table for name, table in run.results.items() if name != "coreference_systems"})
    with pytest.raises(RunError, match="an earlier version made it"):
        draw("table2", earlier)


def test_table_2_counts_mentions_and_the_pronoun_figure_counts_pronouns(run: hs.api.Run) -> None:
    assert "mentions" in render(draw("table2", run.results), "svg").decode()
    assert "pronouns" in render(draw("pronouns", run.results), "svg").decode()


def test_the_matrix_has_all_labels_and_layers(run: hs.api.Run) -> None:
    written = {text.get_text() for text in draw("matrix", run.results).findobj(Text)}
    assert written >= {*run.results["relations_best"]["label"], *map(str, range(1, 13))}


def test_labels_are_never_rendered_as_mathematics(run: hs.api.Run) -> None:
    """A label may be any text. As mathematics, the first label is a syntax error and the second loses its signs."""
    odd = {"nsubj": "$\\undefined$", "det": "a $x_1$ b"}
    tables = dict(run.results)
    for name in ("relations", "relations_best"):
        table = tables[name].arrow
        column = next(column for column in ("label", "relation") if column in table.column_names)
        labels = [odd.get(label, label) for label in table[column].to_pylist()]
        tables[name] = Table(table.set_column(table.column_names.index(column), column, pa.array(labels)))
    results = Results({**run.results.manifest, "signature": "model:$\\undefined$"}, tables)
    for name in ("table1", "matrix"):
        with matplotlib.rc_context({"text.usetex": True}):
            figure = draw(name, results)
        assert not [text.get_text() for text in figure.findobj(Text) if text.get_text() and (text.get_parse_math() or text.get_usetex())]
        figure.savefig(io.BytesIO(), format="png")  # without the theme, as in a notebook
        for suffix in ("svg", "pdf", "png"):
            assert render(figure, suffix)
        svg = unescape(render(figure, "svg").decode())
        assert all(label in svg for label in odd.values())


def test_a_heatmap_of_one_relation_names_the_relation(run: hs.api.Run) -> None:
    assert "nsubj" in render(draw("heatmap", run.results, quantity="nsubj"), "svg").decode()


def test_figures_without_the_required_values_are_refused() -> None:
    other = hs.run("mini", "sampler", ["entropy"], limit=2, replicates=0, gallery=0)
    with pytest.raises(RunError, match="--measures relations"):
        draw("table1", other.results)
    with pytest.warns(HeadscopeWarning, match="none has 10000 cases"):
        few = hs.run("mini", "sampler", {"relations": {"least": 10_000}}, limit=2, replicates=0, gallery=0)
    with pytest.raises(RunError, match=r"-O relations.least=1"):
        draw("table1", few.results)
    with pytest.raises(RunError, match="has no values"):
        draw("matrix", few.results)
    assert "No label has enough cases" in page(few.results)


def test_the_report_has_the_best_heads_and_what_each_head_is_best_at(run: hs.api.Run) -> None:
    relations = next(contest for contest in contests(run.results) if contest["name"] == "relations")
    assert [len(layer["heads"]) for layer in relations["good_at"]] == [12] * 12
    determiners = relations["good_at"][2]["heads"][9]  # 3-10: determiners, among others, in the model card
    assert determiners["lift"] > 0.2
    html = page(run.results)
    for text in (
        "What each head is best at",
        "chance",
        "as in the papers",
        '<section id="coreference">',
        "sieves",
        "Published, not measured here",
        "<td>0.65</td>",
    ):
        assert text in html


def test_the_command_line_prints_best_heads(folder: Path) -> None:
    shown = CliRunner().invoke(app, ["show", str(folder)])
    assert shown.exit_code == 0, shown.output
    assert "relations: the best head of each label" in shown.output
    assert "dep→head" in shown.output
    assert "mention→antecedent" in shown.output or "antecedent→mention" in shown.output
    assert "coreference: the best head of each label" in shown.output
    assert "coreference, pronouns: 19 texts, one document each (too long: truncate)" in shown.output
    head = CliRunner().invoke(app, ["show", str(folder), "relations", "--head", "3-10", "--sort", "lift"])
    assert head.exit_code == 0, head.output


def test_the_note_on_intervals_of_best_heads_is_beside_every_table_of_them(run: hs.api.Run, folder: Path) -> None:
    note = "The interval is for the heads chosen, not for the best head there is"
    assert note in page(run.results)
    for table in ([], ["relations_best"]):
        assert note in CliRunner().invoke(app, ["show", str(folder), *table]).output
    assert note not in CliRunner().invoke(app, ["show", str(folder), "relations"]).output
    assert "Each half of the documents" in choice_note(run.results, "relations")
    assert "(--folds 5) lower this bias" in choice_note(run.results, "relations")


def test_the_option_folds_applies_to_measures_that_choose_best_heads() -> None:
    spec, _ = _settings(None, {}, "relations,tokens,pronouns", ["pronouns.folds=3"], 5)
    assert {name: dict(options) for name, options in spec.measures.items()} == {
        "relations": {"folds": 5},
        "tokens": {},
        "pronouns": {"folds": 3},
    }
    with pytest.raises(RunError, match="--folds is only for measures that choose best heads"):
        _settings(None, {}, "tokens", [], 5)
