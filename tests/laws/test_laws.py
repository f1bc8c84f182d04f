"""Laws that every measure of the registry obeys."""

from __future__ import annotations

import math
import pickle
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from headscope.core.state import State
from headscope.measures import DEFAULT, REGISTRY, Distances, Measure, make
from headscope.measures.distances import groups
from headscope.results.folder import encode_states, read_states
from headscope.stats.bootstrap import GROUPS, group_of, group_weights, poisson_weights
from headscope.stats.inference import FEWEST
from helpers import plain
from helpers.worlds import SLICES_OF, Text, World, one_by_one, run, worlds

# The measures and options that the laws are tested with. A new measure needs an entry; without one,
# test_every_measure_is_listed fails.
TRIED: list[tuple[str, dict[str, Any]]] = [
    ("positions", {}),
    ("positions", {"offsets": (-3, -1, 0, 1, 4), "denominator": "valid"}),
    ("positions", {"average": "token"}),
    ("tokens", {}),
    ("tokens", {"groups": ("sep", "=the|a", "word"), "average": "token"}),
    ("tokens", {"sep_count": "two"}),
    ("entropy", {}),
    ("entropy", {"rows": ("all", "cls", "word", "punct"), "smoothing": 1e-4}),
    ("entropy", {"average": "token", "base": "bits"}),
    ("sinks", {}),
    ("sinks", {"tokens": 3, "threshold": 0.4, "seen": 0.0, "average": "token"}),
    ("sequences", {}),
    ("sequences", {"seed": 3, "average": "token", "rare": 2}),
    ("retrieval", {}),
    ("retrieval", {"seed": 2, "average": "token"}),
    ("trees", {}),
    ("trees", {"punct": "include", "average": "example", "heads": ("1-1",)}),
    ("relations", {"least": 1}),
    ("relations", {"least": 1, "punct": "include", "root": "include", "possessive": "reference", "subtypes": "fold"}),
    ("relations", {"least": 1, "possessive": "clitic", "selection": "in-sample", "offsets": (-1, 1)}),
    ("relations", {"least": 1, "specials": "candidates"}),
    ("coreference", {"least": 1}),
    ("coreference", {"least": 1, "candidates": "any_other_mention", "head_words": "cue", "singletons": "include"}),
    ("coreference", {"least": 1, "candidates": "preceding_words", "selection": "in-sample", "head_match": "nearest"}),
    ("coreference", {"least": 1, "candidates": "all_words", "singletons": "include", "skip_exact_for_pronouns": True}),
    ("pronouns", {"least": 1}),
    ("pronouns", {"least": 1, "head_words": "cue", "selection": "in-sample"}),
    ("distances", {}),
    ("distances", {"level": "word", "rows": "content", "smoothing": 1e-3}),
    ("distances", {"rows": "word", "normalise": False, "epsilons": (0.3,)}),
    ("distances", {"sample": 2}),
    ("saliency", {}),
    ("saliency", {"groups": ("punct", "other"), "average": "token"}),
    ("keywords", {}),
    ("keywords", {"source": "cls", "how": "max"}),
    ("keywords", {"source": "word", "how": "sum"}),
]


@pytest.fixture(scope="module", params=TRIED, ids=lambda tried: f"{tried[0]}-{'-'.join(map(str, tried[1]))}")
def measure(request: pytest.FixtureRequest) -> Measure:
    name, options = request.param
    return make(name, options)


def test_every_measure_is_listed() -> None:
    assert {name for name, _ in TRIED} == set(REGISTRY)


def same(left: State, right: State, exact: bool = False) -> None:
    assert left.merges == right.merges
    for name, array in left.arrays.items():
        if exact:
            assert_array_equal(array, right[name])
        else:
            assert_allclose(array, right[name], rtol=1e-5, atol=1e-6)


@given(world=worlds())
@settings(max_examples=8)
def test_merge_is_commutative_and_associative_and_start_is_neutral(measure: Measure, world: World) -> None:
    a, b, c = (run(measure, world, one_by_one(world.texts[i::3])) for i in range(3))
    same(a.merge(b), b.merge(a), exact=True)
    same(a.merge(b).merge(c), a.merge(b.merge(c)))
    same(a.merge(measure.start(world.layout, 8)), a, exact=True)
    same(measure.start(world.layout, 8).merge(a), a, exact=True)


@given(world=worlds(), shuffle=st.randoms(use_true_random=False), size=st.integers(1, 6))
@settings(max_examples=8)
def test_sharding_batch_size_padding_and_order_do_not_change_the_state(measure: Measure, world: World, shuffle: Any, size: int) -> None:
    plainly = run(measure, world, one_by_one(world.texts))
    order = list(world.texts)
    shuffle.shuffle(order)
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    same(run(measure, world, batches), plainly)
    shards = [run(measure, world, [batch]) for batch in batches]
    merged = shards[0]
    for shard in shards[1:]:
        merged = merged.merge(shard)
    same(merged, plainly)


@given(world=worlds(), size=st.integers(1, 6))
@settings(max_examples=6)
def test_the_state_of_a_slice_equals_that_of_its_documents_alone(
    measure: Measure, world: World, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Batches and shards may hold texts of several slices. The total state is bit for bit the one without slices."""
    batches = [world.texts[i : i + size] for i in range(0, len(world.texts), size)]
    together = run(measure, world, batches, divided=True)
    same(together, run(measure, world, batches), exact=True)
    shards = [run(measure, world, [batch], divided=True) for batch in batches]
    path = tmp_path_factory.mktemp("state") / "state.safetensors"
    path.write_bytes(encode_states({measure.name: reduce(State.merge, shards)}, {}))
    merged = pickle.loads(pickle.dumps(read_states(path)[0][measure.name])).copy()
    of_slices = {name: [text for text in world.texts if text.annotation.slice == name] for name in SLICES_OF}
    for state in (together, merged):
        assert {name for name, texts in of_slices.items() if texts} >= state.parts.keys()
        for name, texts in of_slices.items():
            alone = run(measure, world, [texts] if texts else [])
            part = state.part(name) if name in state.parts else measure.start(world.layout, 8)
            same(part, alone)
            assert part.arrays.keys() == alone.arrays.keys()


@given(world=worlds())
@settings(max_examples=5)
def test_tables_are_pure_and_states_are_restored_exactly_from_disk(
    measure: Measure, world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = run(measure, world, [world.texts])
    before = {name: array.copy() for name, array in state.arrays.items()}
    first, second = measure.tables(state, world.layout), measure.tables(state, world.layout)
    for name, array in before.items():
        assert_array_equal(state[name], array)
    for name, columns in first.items():
        for column, values in columns.items():
            assert_array_equal(values, second[name][column])
    path = tmp_path_factory.mktemp("state") / "state.safetensors"
    path.write_bytes(encode_states({measure.name: state}, {}))
    same(read_states(path)[0][measure.name], state, exact=True)


@given(world=worlds())
@settings(max_examples=12)
def test_tables_equal_a_slow_plain_implementation(measure: Measure, world: World) -> None:
    table = measure.tables(run(measure, world, [world.texts]), world.layout)[measure.name]
    texts = list(world.texts)
    if isinstance(measure, Distances):
        found = dict(
            zip(
                zip(*(table[name] for name in ("layer", "head", "quantity")), strict=True),
                zip(table["value"], table["n"], strict=True),
                strict=True,
            )
        )
        slowly = plain.distances(measure, texts, [(id.layer, id.head) for id in world.layout.ids()])
        assert found.keys() == slowly.keys()
        for key, (value, n) in slowly.items():
            assert_allclose(found[key], (value, n), rtol=1e-4, atol=2e-6 * (1 if measure.normalise else n))
        return
    average = measure.options().get("average", "token")
    seen = set()
    for row in zip(*(table[name] for name in ("kind", "layer", "head", "quantity", "value", "n", "baseline")), strict=True):
        kind, layer, head, quantity, value, n, baseline = row
        maps = [text.maps[layer - 1, head - 1] for text in texts]
        expected, count = plain.mean(measure, texts, maps, quantity, average)
        assert n == count, quantity
        assert_allclose(value, expected, rtol=1e-4, atol=2e-6, err_msg=f"{quantity} of {layer}-{head}")
        if measure.name in (
            *DEFAULT,
            "sinks",
            "sequences",
            "retrieval",
        ):  # other baselines are not even attention and are tested with their measures
            even = [uniform(text) for text in texts]
            assert_allclose(baseline, plain.mean(measure, texts, even, quantity, average)[0], rtol=1e-4, atol=2e-6)
        seen.add((kind, layer, head, quantity))
    assert len(seen) == len(table["n"])


@given(world=worlds())
@settings(max_examples=6)
def test_a_glimpse_at_merged_states_equals_the_table(measure: Measure, world: World) -> None:
    """States are merged text by text and without replicates, as in a gallery. A table can leave out quantities; a
    glimpse has all of them.
    """
    state = measure.start(world.layout, 0)
    for text in world.texts:
        state = state.merge(run(measure, world, [[text]], replicates=0))
    glimpse, expected = measure.glimpse(state, world.layout), measure.expected(state, world.layout)
    number = {(id.kind, id.layer + 1, id.head + 1): place for place, id in enumerate(world.layout.ids())}
    table = measure.tables(run(measure, world, [world.texts]), world.layout)[measure.name]
    assert set(table["quantity"]) <= set(glimpse)
    for kind, layer, head, quantity, value, n, baseline in zip(
        *(table[name] for name in ("kind", "layer", "head", "quantity", "value", "n", "baseline")), strict=True
    ):
        if quantity in expected:
            assert_allclose(expected[quantity][number[kind, layer, head]], baseline, rtol=1e-5, atol=1e-6)
        values, counts = glimpse[quantity]
        assert values.shape == counts.shape == (world.layout.size,)
        assert_allclose(values[number[kind, layer, head]], value, rtol=1e-5, atol=1e-6)
        assert int(counts[number[kind, layer, head]]) == n


def uniform(text: Text) -> np.ndarray[Any, Any]:
    n = len(text.forms)
    seen = np.tri(n) if text.causal else np.ones((n, n))
    return np.asarray(seen / seen.sum(1, keepdims=True))


def by_row(table: Any) -> dict[Any, float]:
    names = zip(*(table[name] for name in ("kind", "layer", "head", "quantity")), strict=True)
    return dict(zip(names, table["value"], strict=True))


@given(world=worlds())
@settings(max_examples=6)
def test_replicates_equal_resampled_documents_and_documents_are_counted(measure: Measure, world: World) -> None:
    """Replicate r repeats each document as often as its weight. The plain bootstrap here copies texts."""
    replicates = 8
    state = run(measure, world, [world.texts], replicates)
    documents = sorted({text.document for text in world.texts})
    if "average" in measure.options():
        weights = poisson_weights(documents, replicates)
    else:
        number = groups(world.layout.size) if measure.name == "distances" else GROUPS
        weights = np.vstack([np.ones(number), group_weights(replicates, 0, number)]).T[
            [group_of(document, number) for document in documents]
        ]
    values: list[dict[Any, float]] = []
    for r in range(1, replicates + 1):
        weight = dict(zip(documents, weights[:, r].astype(int), strict=True))
        copies = [text for text in world.texts for _ in range(weight[text.document])]
        values.append(by_row(measure.tables(run(measure, world, [copies]), world.layout)[measure.name]) if copies else {})
    table = measure.tables(state, world.layout)[measure.name]
    place = {(id.kind, id.layer + 1, id.head + 1): number for number, id in enumerate(world.layout.ids())}
    drawn = {one.quantity: one for one in measure.resampled(state, world.layout)}
    alone = [
        measure.glimpse(run(measure, world, [[text for text in world.texts if text.document == name]]), world.layout) for name in documents
    ]
    groups_of = [tuple(row) for row in weights.tolist()] if "average" not in measure.options() else documents
    for (kind, layer, head, quantity), documents_counted, low in zip(by_row(table), table["documents"], table["low"], strict=True):
        one, at = drawn[quantity], place[kind, layer, head]
        assert_allclose(one.values[1:, at], [found.get((kind, layer, head, quantity), math.nan) for found in values], rtol=1e-4, atol=1e-5)
        there = {group for group, seen in zip(groups_of, alone, strict=True) if quantity in seen and seen[quantity][1][at] > 0}
        assert documents_counted == one.support.documents[at] == len(there)
        assert len(there) >= FEWEST or math.isnan(low)
