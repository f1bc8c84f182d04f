"""Tables, intervals and sentences of twins from planted distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from headscope.core.heads import HeadId
from headscope.errors import HeadscopeError
from headscope.stats.bootstrap import group_weights
from headscope.stats.inference import Support, interval
from headscope.studies.twins.findings import of_twins
from headscope.studies.twins.heads import Heads, Twins
from headscope.studies.twins.states import Sums


def planted(rng: np.random.Generator, a: int = 6, b: int = 4, groups: int = 7) -> tuple[Twins, list[np.ndarray]]:
    """Twins of two models with two layers each, from random divergences in every row; and these rows by group of
    documents.
    """
    rows = [rng.uniform(0, 0.3, (int(rng.integers(1, 5)), (a + b) * (a + b - 1) // 2)) for _ in range(groups)]
    sums = Sums(
        np.array([len(part) for part in rows]),
        np.stack([np.linspace(0.05, 0.6, a + b) * len(part) for part in rows]),
        np.stack([part.sum(0) for part in rows]),
    )
    ids = [tuple(HeadId("encoder", layer, head) for layer in range(2) for head in range(size // 2)) for size in (a, b)]
    heads = Heads("one", "encoder", ids[0]), Heads("other", "encoder", ids[1])
    return Twins(*heads, sums, "word", (0.1, 0.15), 0.2, 40, 0, 9, 7, "signature"), rows


def test_intervals_equal_those_of_resampled_documents() -> None:
    """A group that is drawn twice is copied. Each replicate is computed from the copied rows, head by head."""
    found, rows = planted(np.random.default_rng(0))
    drawn = group_weights(40, 0, 7).astype(int)
    upper = np.triu_indices(10, 1)
    twins, close, depths, layers, ats, mutual = [], [], [], [], [], []
    for counts in drawn:
        copies = [row for part, count in zip(rows, counts, strict=True) for _ in range(count) for row in part]
        matrix = np.zeros((10, 10))
        matrix[upper] = np.mean(copies, 0)
        between = (matrix + matrix.T)[:6, 6:]
        twins.append(between.min(1))
        close.append(np.mean(between.min(0) < 0.15))
        ats.append(between.argmin(1))
        depths.append(np.corrcoef(np.repeat([0, 1], 3), between.argmin(1) // 2)[0, 1])
        layers.append([[between[3 * i : 3 * i + 3, 2 * j : 2 * j + 2].mean() for j in range(2)] for i in range(2)])
        mutual.append(np.mean([between[:, between[head].argmin()].argmin() == head for head in range(6)]))
    table = found.table().where(side="a")
    support = Support.in_groups(np.array([len(part) for part in rows]), 7)

    def bounds(value: Any, values: Any, within: tuple[float, float] = (0, np.inf)) -> Any:
        return np.array(interval(np.array(value), np.array(values), support, within))

    assert_allclose(np.array([table["low"], table["high"]]), bounds(table["distance"], twins))
    at = [f"{place // 2 + 1}-{place % 2 + 1}" for place in np.array(ats).T[0]]
    assert_allclose(table["support"][0], np.mean([name == table["twin"][0] for name in at]))
    summary = {(row["side"], row["quantity"]): row for row in found.table("twins_summary")}
    for key, values in ((("b", "twin_0.15"), close), (("a", "mutual"), mutual), (("a", "twin"), np.mean(twins, 1))):
        assert_allclose([summary[key]["low"], summary[key]["high"]], bounds(summary[key]["value"], values), err_msg=str(key))
    depth = summary["a", "depth"]
    assert_allclose([depth["low"], depth["high"]], bounds(depth["value"], depths, (-1, 1)))
    by_layer = found.table("twins_matrix")
    assert (by_layer["a_layer"], by_layer["b_layer"]) == ([1, 1, 2, 2], [1, 2, 1, 2])
    assert_allclose(np.array([by_layer["low"], by_layer["high"]]), bounds(by_layer["value"], np.reshape(layers, (40, 4))))


def test_tables_and_findings_equal_those_of_planted_distances() -> None:
    found, rows = planted(np.random.default_rng(1))
    distances = np.zeros((10, 10))
    distances[np.triu_indices(10, 1)] = np.concatenate(rows).mean(0)
    distances += distances.T
    between = distances[:6, 6:]
    assert_allclose(found.distances, distances)
    assert_allclose(found.layers, between.reshape(2, 3, 2, 2).mean((1, 3)))
    words = found.sums.words.sum(0) / found.n
    assert found.table()["faint"] == [share < 0.2 for share in words]
    layers = found.table("twins_layers").where(side="b")
    assert_allclose(layers.where(quantity="twin")["value"], between.min(0).reshape(2, 2).mean(1))
    assert_allclose(layers.where(quantity="twin_depth")["value"], (between.argmin(0) // 3).reshape(2, 2).mean(1))
    assert_allclose(layers.where(quantity="words")["value"], words[6:].reshape(2, 2).mean(1))
    assert "untrained" not in layers["quantity"]
    pairs = found.mutual()
    assert pairs == sorted(pairs, key=lambda pair: pair[2])
    both = {(int(between[i].argmin()), i) for i in range(6) if between[:, between[i].argmin()].argmin() == i}
    assert {(found.b.ids.index(b), found.a.ids.index(a)) for a, b, _ in pairs} == both
    points = found.embed("classical").points
    assert points.shape == (10, 2)
    summary = {(row["side"], row["quantity"]): row["value"] for row in found.table("twins_summary")}
    assert summary["both", "all_pairs"] == pytest.approx(between.mean())
    assert summary["a", "faint"] == np.mean(words[:6] < 0.2)
    text = " ".join(of_twins(found))
    faint = int((words[:6] < 0.2).sum())
    assert faint == 3
    assert f"Faint: {faint} of one give" in text
    assert f"A head of one is {between.min(1).mean():.3f} [" in text
    assert f"{len(pairs)} pair" in text
    with pytest.raises(HeadscopeError, match="twins_layers"):
        found.table("layers")
    with pytest.raises(HeadscopeError, match="Use a or b"):
        found.of("c")  # type: ignore[arg-type]


def test_a_single_head_has_no_neighbour_and_a_single_document_no_interval() -> None:
    ids = (HeadId("encoder", 0, 0),), (HeadId("decoder", 0, 0), HeadId("decoder", 0, 1))
    sums = Sums(np.array([4]), np.array([[2.0, 1.0, 0.2]]), np.array([[0.8, 0.4, 1.2]]))
    found = Twins(Heads("x", "encoder", ids[0]), Heads("y", "decoder", ids[1]), sums, "word", (0.15,), 0.1, 5, 0, 1, 1, "signature")
    table = found.table()
    assert table["twin"] == ["decoder/1-2", "1-1", "1-1"]
    assert_allclose(table["distance"], [0.1, 0.2, 0.1])
    assert table["own_neighbour"] == ["", "decoder/1-2", "decoder/1-1"]
    assert_allclose(table["own_distance"], [np.nan, 0.3, 0.3])
    assert table["mutual"] == [True, False, True]
    assert table["faint"] == [False, False, True]
    assert not np.isfinite([*table["low"], *table["support"]]).any()
    quantities = {(row["side"], row["quantity"]) for row in found.table("twins_summary")}
    assert ("b", "own") in quantities
    assert not quantities & {("a", "own"), ("a", "beyond_own"), ("a", "depth"), ("a", "untrained"), ("a", "nearer_than_untrained")}
    text = of_twins(found)
    compared = "1 head of x and 2 of y are compared: encoder and decoder attention between words"
    assert text[0].startswith(f"{compared}, 4 rows of 1 text of 1 document")
    assert text[1] == "A head of x is 0.100 from its twin in y, on average."
    assert text[-1] == "Faint: 1 of y give less than 10% of their attention to words; only this part is compared."
