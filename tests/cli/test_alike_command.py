"""`headscope alike`, and the sentences that it shares with the summary of a run and the report."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.comparison.alike import alike, doing, group_table, groups_sentence, layers_sentence, pairs_sentence, twins_sentence
from headscope.errors import HeadscopeError
from headscope.results.table import p_value

TOKENS = ["[CLS]", "a", "b", "c", "[SEP]"]


def call(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, HeadscopeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def planted_maps() -> np.ndarray:
    """Maps of two layers of three heads. Layer 1 attends to [SEP], layer 2 to [CLS]. In each layer, heads 1 and 2 are
    identical, and head 3 attends partly to a word, a different one per layer.
    """
    maps = np.zeros((2, 3, 5, 5))
    maps[0, :, :, 4] = maps[1, :, :, 0] = 1
    maps[:, 2] *= 0.55
    maps[0, 2, :, 1] = maps[1, 2, :, 3] = 0.45
    return maps


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alike") / "run"
    several = {"documents": [*"abcdefghijkl"], "replicates": 20, "gallery": 0}
    hs.measure([planted_maps()] * 12, [TOKENS] * 12, ["distances", "tokens"], out=out, **several)  # type: ignore[arg-type]
    return out


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """The Jensen-Shannon divergence in nats, computed by its definition."""
    middle = (p + q) / 2
    return float(sum(0.5 * a * np.log(a / m) for row in (p, q) for a, m in zip(row, middle, strict=True) if a > 0))


def expected_distances() -> np.ndarray:
    """The distances between the six heads, each from its first row."""
    rows = planted_maps()[:, :, 0].reshape(6, 5)
    return np.array([[divergence(p, q) for q in rows] for p in rows])


def test_sentences_contain_the_numbers_worked_out_by_hand(folder: Path) -> None:
    run = hs.open_run(folder)
    matrix = expected_distances()
    layer = np.repeat([0, 1], 3)
    upper = np.triu(np.ones((6, 6), dtype=bool), 1)
    same = layer[:, None] == layer
    within, between = matrix[upper & same].mean(), matrix[upper & ~same].mean()
    said = layers_sentence(run.results, "encoder")
    # Of the 20 ways to choose three of six heads, two keep the layers as they are: p = 0.1, which is not significant.
    assert said.startswith("Heads of one layer are not significantly closer to each other than to heads of other layers: ")
    assert f"{within:.3f} [{within:.3f} {within:.3f}] nats within layers and {between:.3f} [" in said
    assert f"a difference of {between - within:.3f}" in said
    p = next(row["p"] for row in run.results["distances_structure"] if row["quantity"] == "difference")
    assert 0.08 < p < 0.12
    assert f"(p {p_value(p)}, permutation test)" in said
    assert twins_sentence(run.results, "encoder") == (
        "4 [4 4] of 6 heads have a near-duplicate (distance < 0.02 nats), 4 [4 4] at distance < 0.05, 4 [4 4] at distance < 0.1."
    )
    assert (
        pairs_sentence(run.results, "encoder", 2)
        == "The most similar pairs of heads are 1-1 and 1-2 (0.000 [0.000 0.000]), 2-1 and 2-2 (0.000 [0.000 0.000])."
    )


def test_groups_list_their_members_and_behaviours(folder: Path) -> None:
    found = alike(hs.open_run(folder).results)
    rows = list(group_table(found, found.groups(2)))
    assert [(row["group"], row["heads"], row["members"]) for row in rows] == [(1, 3, "1-1 1-2 1-3"), (2, 3, "2-1 2-2 2-3")]
    assert [row["behaviours"] for row in rows] == ["3 [SEP]", "3 [CLS]"]
    said = groups_sentence(found, found.groups(2))
    assert said.startswith("The heads fall into 2 groups of 3 and 3 heads, mean silhouette ")
    assert said.endswith(": 3 heads (3 [SEP]); 3 heads (3 [CLS]).")
    assert "fall into no groups" in groups_sentence(found, found.groups(1))
    assert "2-3 alone" in groups_sentence(found, found.groups(4))


def test_behaviours_are_listed_by_count_then_name() -> None:
    assert doing(["broad", "", "next", "broad", "aux", ""]) == "2 broad, 1 aux, 1 next, 2 other"
    assert doing([""]) == "1 other"


@pytest.mark.parametrize(("p", "said"), [(0.0001, "< 0.001"), (0.0123, "= 0.012"), (0.4567, "= 0.46")])
def test_p_values_are_rounded_and_written_with_a_sign(p: float, said: str) -> None:
    assert p_value(p) == said


def test_sentences_cover_sums_single_documents_and_single_layers() -> None:
    run = hs.measure(planted_maps(), TOKENS, {"distances": {"normalise": False}})
    within = expected_distances()[:3, :3][np.triu_indices(3, 1)].mean()
    said = layers_sentence(run.results, "encoder")
    assert f"{5 * within:.3f} nats, summed over rows within layers" in said, "a sum over five rows, without an interval for one document"
    assert twins_sentence(run.results, "encoder").startswith("4 of 6 heads have a near-duplicate (distance < 0.02 nats per row), ")
    one_layer = hs.measure(planted_maps()[:1], TOKENS, ["distances"])
    assert layers_sentence(one_layer.results, "encoder") == ""


def test_the_command_prints_sentences_pairs_and_groups(folder: Path) -> None:
    text = call("alike", folder, "--groups", "2", "--epsilon", "0.01", "--pairs", "3")
    run = hs.open_run(folder)
    assert text.startswith("6 heads of encoder attention, 60 rows; Jensen-Shannon divergences in nats\n")
    assert layers_sentence(run.results, "encoder") in text
    assert twins_sentence(run.results, "encoder") in text
    assert "4 of 6 heads have a near-duplicate (distance < 0.01)\n  1-1 1-2\n  2-1 2-2\n" in text
    assert "the 3 closest pairs" in text
    assert "1  3 heads, silhouette " in text
    assert ": 3 [SEP]\n     1-1 1-2 1-3\n" in text
    assert text.rstrip().endswith(run.signature)


def test_the_table_of_heads_is_written_in_several_formats(folder: Path, tmp_path: Path) -> None:
    expected = list(alike(hs.open_run(folder).results).table("classical", number=2, linkage="complete"))
    options = ("--embedding", "classical", "--groups", "2", "--linkage", "complete")
    for name in ("heads.csv", "heads.json", "heads.md", "heads.tex", "heads.parquet"):
        assert call("alike", folder, *options, "-o", tmp_path / name).strip() == str(tmp_path / name)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "heads.csv").read_text(encoding="utf-8"))))
    assert [(row["layer"], row["head"], row["neighbour"], row["label"]) for row in rows] == [
        (str(row["layer"]), str(row["head"]), row["neighbour"], row["label"]) for row in expected
    ]
    assert [row["group"] for row in rows] == ["1", "1", "1", "2", "2", "2"]
    assert json.loads((tmp_path / "heads.json").read_text(encoding="utf-8")) == expected
    assert (tmp_path / "heads.md").read_text(encoding="utf-8").startswith("| kind | layer | head | x | y | group |")
    assert r"\toprule" in (tmp_path / "heads.tex").read_text(encoding="utf-8")
    assert pq.read_table(tmp_path / "heads.parquet").to_pylist() == expected
    assert json.loads(call("alike", folder, *options, "--format", "json")) == expected
    assert (tmp_path / "heads.json").read_text(encoding="utf-8") == call("alike", folder, *options, "--format", "json")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-o", "heads.xls"], "tables cannot be written as '.xls'"),
        (["--epsilon", "0"], "epsilon is 0"),
        (["--groups", "9"], "6 heads cannot be in 9 groups"),
        (["--linkage", "ward"], "no linkage is called 'ward'"),
        (["--embedding", "tsne", "--format", "csv"], "no embedding is called 'tsne'"),
        (["--kind", "cross"], "no distances of cross attention"),
    ],
)
def test_invalid_options_are_refused(folder: Path, options: list[str], says: str) -> None:
    with pytest.raises(HeadscopeError) as error:
        call("alike", folder, *options)
    assert says in str(error.value)


def test_show_prints_the_sentences_about_distances(folder: Path) -> None:
    text = call("show", folder)
    run = hs.open_run(folder)
    assert f"distances: {layers_sentence(run.results, 'encoder')} {pairs_sentence(run.results, 'encoder')}" in text.replace("\n", " ")
    assert "nan" not in text


def test_help_contains_an_example() -> None:
    assert "  headscope alike RUN --groups 12 --linkage complete" in call("alike", "--help")


def test_plot_accepts_the_options_of_distance_figures(folder: Path, tmp_path: Path) -> None:
    for figure, *options in (
        ["clark6", "--embedding", "classical", "--sqrt"],
        ["dendrogram", "--groups", "2"],
        ["distances", "--order", "tree"],
    ):
        path = tmp_path / f"{figure}.svg"
        assert call("plot", folder, figure, *options, "-o", path).strip() == str(path)
    assert "classical scaling" in (tmp_path / "clark6.svg").read_text(encoding="utf-8")
    assert "2 groups" in (tmp_path / "dendrogram.svg").read_text(encoding="utf-8")
    assert "in the order of the tree" in (tmp_path / "distances.svg").read_text(encoding="utf-8")
    with pytest.raises(HeadscopeError, match="clark6 has no option order"):
        call("plot", folder, "clark6", "--order", "tree")
