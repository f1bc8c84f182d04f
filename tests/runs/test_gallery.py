"""The gallery of a run: which texts and examples are kept, and whether its numbers equal those of the maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import jensenshannon

import headscope as hs
from headscope.core.heads import HeadId
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoder
from headscope.gallery.texts import look
from headscope.models.model import Model
from headscope.results.gallery import Example
from headscope.results.skills import is_significant
from headscope.results.table import Table
from helpers.galleries import CORPUS, DOCUMENTS, Map, gallery_of, load_small, weights


def test_a_run_keeps_stacks_and_examples_of_bounded_size(gallery_run: hs.Run) -> None:
    gallery = gallery_of(gallery_run)
    assert len(gallery.stacks) == 3
    ids = [gallery.texts[number]["id"].rpartition("/")[0] for number, _ in gallery.stacks]
    assert len(set(ids)) == 3, "the stacks are of different documents"
    for number, maps in gallery.stacks:
        n = len(gallery.texts[number]["source"]["tokens"])
        assert 8 <= n <= 24
        assert list(maps) == [HeadId("encoder", layer, head) for layer in range(12) for head in range(12)]
        assert all(map.shape == (n, n) and map.dtype == np.uint16 for map in maps.values())
        assert_allclose(weights(np.stack([*maps.values()])).sum(-1), 1, atol=n / 65535)
    for example in gallery.examples:
        tokens = gallery.texts[example.text]["source"]["tokens"]
        assert example.map.shape == (len(tokens), len(tokens))
        assert len(tokens) <= 48
        assert example.value > 0
        assert "all" not in example.quantity.split()
        assert example.measure != "entropy"
    by_skill: dict[Any, list[Example]] = {}
    for example in gallery.examples:
        by_skill.setdefault((example.head, example.measure, example.quantity), []).append(example)
    assert len({head for head, *_ in by_skill}) == 144
    for examples in by_skill.values():
        documents = [gallery.texts[example.text]["id"].rpartition("/")[0] for example in examples]
        assert len(set(documents)) == len(documents) <= 2
    assert gallery_run.results.path is not None
    assert (gallery_run.results.path / "gallery.safetensors").stat().st_size < 3_000_000


def test_examples_of_a_head_show_the_quantity_with_its_largest_lift(gallery_run: hs.Run) -> None:
    gallery = gallery_of(gallery_run)
    for measures in (("positions", "tokens"), ("relations",), ("coreference",)):
        best: dict[HeadId, tuple[float, str]] = {}
        for measure in measures:
            for row in gallery_run.results[measure]:
                # In texts that begin with [CLS], `to_first` repeats `to_cls`.
                if row["quantity"] not in ("sep_to_sep", "other_to_sep", "to_first") and row.get("label") != "all":
                    head = HeadId(row["kind"], row["layer"] - 1, row["head"] - 1)
                    best[head] = max(best.get(head, (0, "")), (row["value"] - row["baseline"], row["quantity"]))
        shown = {example.head: example.quantity for example in gallery.examples if example.measure in measures}
        assert shown
        for head, quantity in shown.items():
            lift = next(
                row["value"] - row["baseline"]
                for measure in measures
                for row in gallery_run.results[measure].where(layer=head.layer + 1, head=head.head + 1, quantity=quantity)
            )
            assert lift == pytest.approx(best[head][0], abs=2e-6)


def test_the_value_of_an_example_equals_that_of_its_map(gallery_run: hs.Run) -> None:
    """Computed again from the stored map, tokens and annotation, without the measures."""
    gallery = gallery_of(gallery_run)
    checked = set()
    for example in gallery.examples:
        text = gallery.texts[example.text]
        side, map = text["source"], weights(example.map)
        if "window" in text:
            continue
        n = len(map)
        if example.measure == "positions" and example.quantity in ("previous", "self", "next"):
            offset = {"previous": -1, "self": 0, "next": 1}[example.quantity]
            assert example.value == pytest.approx(np.diagonal(map, offset).sum() / n, abs=1e-3)
        elif example.quantity in ("to_sep", "to_cls"):
            role = {"to_cls": 1, "to_sep": 2}[example.quantity]
            assert example.value == pytest.approx(map[:, np.array(side["roles"]) == role].sum() / n, abs=1e-3)
        elif example.measure == "relations":
            label, _, direction = example.quantity.partition(" ")
            right, total = relation(side, map, label, turned=bool(direction))
            assert total == example.n
            assert right == pytest.approx(example.value * example.n), example.quantity
        else:
            continue
        checked.add(example.measure)
    assert checked == {"positions", "tokens", "relations"}


def relation(side: dict[str, Any], map: Map, label: str, turned: bool) -> tuple[int, int]:
    """The number of words of a label whose strongest word is their governor, and the number of words of the label
    (docs/relations.md; one sentence per text).
    """
    of = [np.flatnonzero(np.array(side["words"]) == word) for word in range(len(side["forms"]))]
    between = np.array([[map[np.ix_(rows, columns)].sum(1).mean() for columns in of] for rows in of])
    scores = between.T if turned else between
    np.fill_diagonal(scores, -1)
    cases = [(word, head) for word, head, name in side["relations"] if name == label]
    return sum(int(scores[word].argmax()) == head for word, head in cases), len(cases)


def test_a_long_text_is_cut_to_a_window_with_coreferent_mentions(gallery_run: hs.Run, mini: Model) -> None:
    """Of documents of 128 tokens, 48 are shown, with several mentions of one entity; the map has the same window."""
    gallery = gallery_of(gallery_run)
    cut = [example for example in gallery.examples if example.measure == "coreference"]
    assert cut
    documents = {text.id: text for text in Encoder(mini.tokenizer, "document", 128, "truncate").texts(DOCUMENTS, Tally())}
    for example in cut[:6]:
        text = gallery.texts[example.text]
        start, total = text["window"]
        assert total == len(documents[text["id"]])
        entities = [entity for *_, entity in text["source"]["mentions"]]
        assert len(entities) > len(set(entities))
        whole = look(mini, documents[text["id"]], [example.head])[example.head]
        assert_allclose(weights(example.map), whole[start : start + 48, start : start + 48], atol=2e-5)


def test_distances_are_mean_divergences_over_all_texts(tmp_path: Path) -> None:
    model = load_small(tmp_path, "gpt2", "gpt2")
    gallery = gallery_of(hs.run(model, CORPUS, ["positions"], max_length=60, replicates=0))
    texts = list(Encoder(model.tokenizer).texts(CORPUS, Tally()))
    total, rows = np.zeros((8, 8)), 0
    for text in texts:
        maps = [*look(model, text).values()]
        rows += len(text)
        total += [[sum(jensenshannon(p, q) ** 2 for p, q in zip(a, b, strict=True)) for b in maps] for a in maps]
    assert gallery.distances is not None
    assert gallery.points is not None
    assert gallery.points.rows == rows
    assert_allclose(gallery.distances, total / rows, atol=1e-5)
    for head, near in enumerate(gallery.points.neighbours):
        order = [other for other in np.argsort(gallery.distances[head]) if other != head]
        assert [other for other, _ in near] == order[:5]
        assert [distance for _, distance in near] == [float(gallery.distances[head, other]) for other, _ in near]


def test_each_point_has_the_first_label_of_its_head(gallery_run: hs.Run) -> None:
    points = gallery_of(gallery_run).points
    assert points is not None
    assert points.behaviour == tuple(next(iter(words), "") for words in gallery_run.results.head_labels.words())
    assert any(points.behaviour)


@pytest.mark.parametrize(("lift", "low", "sure"), [(0.2, 0.1, True), (0.2, -0.1, False), (0.2, np.nan, False), (0.0, 0.0, False)])
def test_a_best_head_is_significant_only_if_its_lower_bound_is_above_zero(lift: float, low: float, sure: bool) -> None:
    best = Table.of({"label": ["all", "obj"], "heads": ["1-1", "1-2"], "lift": [lift] * 2, "lift_low": [low] * 2})
    assert [is_significant(row) for row in best] == [sure] * 2
