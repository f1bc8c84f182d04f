"""Similar heads: neighbours, redundant sets, groups and embeddings, from a hand-made table of distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, jensenshannon
from sklearn.metrics import silhouette_samples

import headscope as hs
from headscope.comparison.alike import alike
from headscope.core.heads import HeadId, HeadLayout, Kind, Site
from headscope.errors import MeasureError, RunError
from headscope.results.results import Results
from headscope.results.table import Table
from helpers.labelled import labelled

Matrix = NDArray[np.float64]
ENCODER = HeadLayout((Site("encoder", 0, 3, 3, ""), Site("encoder", 1, 3, 3, "")))
SIX = ["1-1", "1-2", "1-3", "2-1", "2-2", "2-3"]
# Six heads on a line: four are close together, and two, far from those four, are nearly equal.
# Gaps of 0.02 and 0.03 join three of the four; a gap of 0.01 joins the last two.
POSITIONS = np.array([0.0, 0.02, 0.05, 0.15, 0.60, 0.61])


def line_distances() -> Matrix:
    """The matrix of distances between the positions."""
    return np.asarray(np.abs(POSITIONS[:, None] - POSITIONS))


def pairs_of(layout: HeadLayout, matrices: dict[Kind, Matrix], n: int = 500) -> Table:
    """The table of distances between pairs of heads, in the order of np.triu_indices."""
    columns: dict[str, list[Any]] = {name: [] for name in ("kind", "a", "b", "value", "low", "high", "error", "n")}
    for kind, matrix in matrices.items():
        heads = [head for head in layout.ids() if head.kind == kind]
        for a, b in zip(*np.triu_indices(len(heads), 1), strict=True):
            row = (kind, str(heads[a]), str(heads[b]), matrix[a, b], matrix[a, b] - 0.01, matrix[a, b] + 0.01, np.nan, n)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    return Table.of(columns)


def results(layout: HeadLayout, **tables: Table) -> Results:
    sites = [{"kind": site.kind, "layer": site.layer + 1, "heads": site.heads, "kv_heads": site.kv_heads} for site in layout.sites]
    return Results({"signature": "made by hand", "sites": sites, "measures": {}}, tables)


def six_heads(**tables: Table) -> Results:
    return results(ENCODER, distances_pairs=pairs_of(ENCODER, {"encoder": line_distances()}), **tables)


def run_with_labels() -> Results:
    """A run with distances and tokens, in which some heads attend to [SEP] or to punctuation."""
    shown = {"to_sep": [0.9, 0.65, 0.2, 0.0, 0.0, 0.0], "to_punct": [0.7, 0.0, 0.0, 0.0, 0.55, 0.0]}
    return labelled(ENCODER, tables={"distances_pairs": pairs_of(ENCODER, {"encoder": line_distances()})}, tokens=shown)


def test_alike_reads_heads_distances_and_labels_of_a_run() -> None:
    found = alike(run_with_labels())
    assert found.kind == "encoder"
    assert [str(head) for head in found.heads] == SIX
    assert_array_equal(found.distances, line_distances())
    assert_array_equal(np.diagonal(found.distances), 0)
    assert found.n == 500
    assert found.behaviours == (("[SEP]", "punctuation"), ("[SEP]",), (), (), ("punctuation",), ())
    assert found.labels == ("[SEP]", "[SEP]", "", "", "punctuation", "")


def test_distances_of_a_run_are_mean_divergences_of_rows() -> None:
    """Two layers of two heads and one text of six tokens: each pair of heads is compared row by row."""
    maps = np.random.default_rng(0).dirichlet(np.full(6, 0.3), size=(2, 2, 6))
    found = alike(hs.measure(maps, list("abcdef"), ["distances", "positions"], replicates=0).results)
    flat = maps.reshape(4, 6, 6)
    assert_allclose(
        found.distances, [[np.mean([jensenshannon(*rows) ** 2 for rows in zip(p, q, strict=True)]) for q in flat] for p in flat], atol=1e-5
    )
    assert [str(head) for head in found.heads] == ["1-1", "1-2", "2-1", "2-2"]
    assert found.n == 6


def test_the_order_of_rows_in_the_table_changes_nothing() -> None:
    table = pairs_of(ENCODER, {"encoder": line_distances()})
    mixed = Table(table.arrow.take(np.random.default_rng(0).permutation(len(table))))
    assert_array_equal(alike(results(ENCODER, distances_pairs=mixed)).distances, line_distances())


def test_neighbours_are_sorted_by_distance_and_unknown_heads_are_refused() -> None:
    found = alike(six_heads())
    assert [(str(head), round(distance, 9)) for head, distance in found.neighbours("1-3", 3)] == [
        ("1-2", 0.03),
        ("1-1", 0.05),
        ("2-1", 0.1),
    ]
    assert [head for head, _ in found.neighbours(HeadId("encoder", 1, 2), 2)] == [HeadId("encoder", 1, 1), HeadId("encoder", 1, 0)]
    assert len(found.neighbours("1-1", 99)) == 5
    for name, words in (("3-1", "no distances of head 3-1"), ("cross/1-1", "1-1 to 2-3"), ("first", "is not the name of a head")):
        with pytest.raises(RunError, match=words):
            found.neighbours(name)


def test_redundant_sets_join_heads_closer_than_epsilon() -> None:
    found = alike(six_heads())

    def names(epsilon: float) -> list[list[str]]:
        return [list(map(str, heads)) for heads in found.redundant(epsilon).sets]

    assert names(0.005) == []
    assert names(0.015) == [["2-2", "2-3"]]
    assert names(0.025) == [["1-1", "1-2"], ["2-2", "2-3"]]
    # 1-1 and 1-3 are 0.05 apart, but 1-2 is closer than 0.04 to both.
    assert names(0.04) == [["1-1", "1-2", "1-3"], ["2-2", "2-3"]]
    assert [str(head) for head in found.redundant(0.04).heads] == ["1-1", "1-2", "1-3", "2-2", "2-3"]
    assert names(1.0) == [SIX]
    exactly = float(found.distances[0, 1])
    assert HeadId("encoder", 0, 0) not in found.redundant(exactly).heads, "a distance equal to epsilon is not redundant"


def test_identical_heads_are_one_redundant_set_and_one_group() -> None:
    identical = results(ENCODER, distances_pairs=pairs_of(ENCODER, {"encoder": np.zeros((6, 6))}))
    assert alike(identical).redundant(1e-9).sets == (tuple(ENCODER.ids()),)
    assert alike(identical).groups().number == 1
    assert_array_equal(alike(identical).embed().points, 0)


def test_embedding_and_grouping_follow_the_distances() -> None:
    found = alike(six_heads())
    assert_allclose(np.asarray(cdist(found.embed().points, found.embed().points)), line_distances(), atol=1e-6)
    for method in ("metric", "nonmetric", "classical"):
        assert found.embed(method).stress < 1e-3
    assert found.embed(sqrt=True).stress > 0.01
    grouped = found.groups()
    assert_array_equal(grouped.groups, [0, 0, 0, 0, 1, 1])
    assert_allclose(grouped.silhouettes, silhouette_samples(line_distances(), grouped.groups, metric="precomputed"))
    assert list(grouped.scores) == [2, 3, 4, 5]
    assert list(found.groups(most=3).scores) == [2, 3]
    assert found.groups(3, "complete", sqrt=True).number == 3
    assert found.groups(sqrt=True).tree.heights[-1] > grouped.tree.heights[-1]
    with pytest.raises(RunError, match="6 heads cannot be in 7 groups"):
        found.groups(7)
    with pytest.raises(MeasureError, match="average, complete, single"):
        found.groups(linkage="ward")  # type: ignore[arg-type]


def test_the_table_has_one_row_per_head() -> None:
    found = alike(run_with_labels())
    table = found.table()
    assert table.columns == ["kind", "layer", "head", "x", "y", "group", "silhouette", "neighbour", "distance", "label", "labels"]
    assert table.metadata == {"signature": "made by hand"}
    assert table["layer"] == [1, 1, 1, 2, 2, 2]
    assert table["head"] == [1, 2, 3] * 2
    assert table["group"] == [1, 1, 1, 1, 2, 2]
    assert table["neighbour"] == ["1-2", "1-1", "1-2", "1-3", "2-3", "2-2"]
    assert table["distance"] == pytest.approx([0.02, 0.02, 0.03, 0.1, 0.01, 0.01])
    assert table["labels"] == ["[SEP], punctuation", "[SEP]", "", "", "punctuation", ""]
    assert_array_equal(np.column_stack([table["x"], table["y"]]), found.embed().points)
    chosen = found.table("classical", sqrt=True, number=3, linkage="single")
    assert_array_equal(chosen["x"], found.embed("classical", sqrt=True).points[:, 0])
    assert chosen["group"] == (found.groups(3, "single", sqrt=True).groups + 1).tolist()


def test_pairs_of_a_decoder_may_name_heads_with_or_without_their_kind() -> None:
    layout = HeadLayout((Site("decoder", 0, 3, 3, ""),))
    far = np.array([[0, 0.5, 0.6], [0.5, 0, 0.7], [0.6, 0.7, 0]])
    short = pairs_of(layout, {"decoder": far})
    assert short["a"] == ["1-1", "1-1", "1-2"]
    long = Table.of(
        {**{name: short[name] for name in short.columns}, **{side: [f"decoder/{head}" for head in short[side]] for side in "ab"}}
    )
    for pairs in (short, long):  # runs of earlier versions have the long names
        found = alike(results(layout, distances_pairs=pairs))
        assert_array_equal(found.distances, far)
        assert found.table()["neighbour"] == ["1-2", "1-1", "1-1"]


def test_the_kind_with_the_most_heads_is_the_default() -> None:
    layout = HeadLayout((Site("encoder", 0, 2, 2, ""), Site("decoder", 0, 3, 3, ""), Site("cross", 0, 3, 1, "")))
    near = 0.1 * (1 - np.eye(3))
    far = np.array([[0, 0.5, 0.6], [0.5, 0, 0.7], [0.6, 0.7, 0]])
    tables = pairs_of(layout, {"encoder": 0.3 * (1 - np.eye(2)), "decoder": far, "cross": near})
    run = results(layout, distances_pairs=tables)
    found = alike(run)
    assert found.kind == "decoder"
    assert_array_equal(found.distances, far)
    assert found.table()["neighbour"] == ["decoder/1-2", "decoder/1-1", "decoder/1-1"]
    assert found.neighbours("1-1", 1) == found.neighbours("decoder/1-1", 1) == [(HeadId("decoder", 0, 1), 0.5)]
    assert_array_equal(alike(run, "cross").distances, near)
    two = alike(run, "encoder").table()
    assert two["group"] == [1, 1]
    assert np.isnan(two["silhouette"]).all()


def test_missing_distances_are_refused() -> None:
    with pytest.raises(RunError, match=r"the run has no distances\. Run again with --measures distances"):
        alike(results(ENCODER))
    with pytest.raises(RunError, match=r"no distances of cross attention\. It has those of encoder"):
        alike(six_heads(), "cross")
    gap = Table(pairs_of(ENCODER, {"encoder": line_distances()}).arrow.slice(1))
    for table in (gap, pairs_of(ENCODER, {"encoder": np.full((6, 6), np.nan)}, n=0)):
        with pytest.raises(RunError, match="some distances between heads of the run are missing"):
            alike(results(ENCODER, distances_pairs=table))
    single_head = HeadLayout((Site("encoder", 0, 1, 1, ""),))
    no_pairs = Table(pairs_of(ENCODER, {"encoder": line_distances()}).arrow.slice(0, 0))
    with pytest.raises(RunError, match="does not have two heads of one kind"):
        alike(results(single_head, distances_pairs=no_pairs))
