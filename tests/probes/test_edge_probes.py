"""Edge probes that are trained together: each equals a plain implementation, and the same probe trained alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from headscope.core.annotation import Annotation
from headscope.core.document import Edge, Word
from headscope.encoding.texts import Encoded
from headscope.errors import RunError
from headscope.results.table import Table
from headscope.studies.edge_probe import linear
from headscope.studies.edge_probe.feeding import Feeder, Items, StateRows, items
from headscope.studies.edge_probe.linear import fitted, linear_counts, span_vectors
from headscope.studies.edge_probe.probe import Probes, Shape, cumulative, shares, single, visible
from headscope.studies.edge_probe.summary import linear_warnings
from headscope.studies.edge_probe.task import beliefs, counts, f1
from headscope.studies.edge_probe.training import Adam, EdgeRecipe, loss, train
from headscope.studies.hidden_states import HiddenStates

CPU = torch.device("cpu")
LAYERS, SIZE = 3, 6


def _text(number: int, pieces: list[int]) -> Encoded:
    """A text whose words have the given numbers of pieces, between two special tokens."""
    word_of = [-1, *(word for word, count in enumerate(pieces) for _ in range(count)), -1]
    words = tuple(Word(f"w{number}-{place}") for place in range(len(pieces)))
    ids = np.arange(len(word_of))
    return Encoded(f"d{number}/1", Annotation.of_sentence(f"d{number}", words), ids, 0 * ids, (0,) * len(ids), tuple(word_of), ())


def _world(pairs: bool, texts: int = 9) -> tuple[HiddenStates, Items]:
    """Random states, and targets whose labels depend on the last layer at their first span. Words and spans have
    several sizes.
    """
    rng = np.random.default_rng(7)
    sources = [_text(number, rng.integers(1, 4, size=rng.integers(2, 6)).tolist()) for number in range(texts)]
    lengths = tuple(len(text) for text in sources)
    values = rng.standard_normal(sum(lengths) * LAYERS * SIZE)
    states = HiddenStates(tuple(range(LAYERS)), SIZE, lengths, values)

    def edges(text: Encoded) -> list[Edge]:
        found = []
        number = int(text.document[1:])
        for place in range(len(text.words)):
            end = min(place + 1 + place % 2, len(text.words))
            tokens = [token for token, word in enumerate(text.word_of) if place <= word < end]
            label = "high" if states[number][-1, tokens, 0].mean() > 0 else "low"
            found.append(Edge("toy", (label,), (place, end), (0, place + 1) if pairs else None))
        return found

    return states, items("toy", sources, [edges(text) for text in sources])


def _feeder(states: HiddenStates, own: Items, dtype: torch.dtype = torch.float64) -> Feeder:
    return Feeder(StateRows(states, CPU), own, [own.labels], dtype)


def _plain(parameters: dict[str, np.ndarray], states: np.ndarray, spans: list[tuple[int, int]], seen: tuple[int, ...]) -> np.ndarray:
    """The logits of one target, in plain loops: every token is projected before a span is pooled."""
    numbers = np.exp([parameters["mix"][layer] for layer in seen])
    mixed = parameters["scale"] * sum(share * states[layer] for share, layer in zip(numbers / numbers.sum(), seen, strict=True))
    parts = []
    for slot, (start, end) in enumerate(spans):
        tokens = mixed[start:end] @ parameters[f"project_{slot}"] + parameters[f"project_{slot}_bias"]
        scores = np.exp([token @ parameters[f"scorer_{slot}"] + 0.7 for token in tokens])  # any bias gives the same weights
        parts.append(sum(score / scores.sum() * token for score, token in zip(scores, tokens, strict=True)))
    joined = np.concatenate(parts) @ np.concatenate([parameters[f"inner_{slot}"] for slot in range(len(spans))])
    inner = np.tanh(joined + parameters["inner_bias"])
    inner = (inner - inner.mean()) / math.sqrt(inner.var() + 1e-5) * parameters["norm"] + parameters["norm_bias"]
    found: np.ndarray = inner @ parameters["out"] + parameters["out_bias"]
    return found


@pytest.mark.parametrize(("pairs", "texts"), [(False, 9), (True, 9), (True, 1)])  # more spans than features, and fewer
def test_logits_equal_those_of_the_plain_probe(pairs: bool, texts: int) -> None:
    states, own = _world(pairs, texts)
    shown = [*cumulative(LAYERS), *single(LAYERS)]
    probes = Probes(Shape(LAYERS, SIZE, own.slots, 2, 5), shown, [3, 4], CPU, torch.float64)
    for number, value in enumerate(probes.parameters.values()):
        value.data += 0.3 * torch.randn(value.shape, generator=torch.Generator().manual_seed(number), dtype=torch.float64)
    found = {}
    for batch in _feeder(states, own).steady(2):
        for place, target in enumerate(batch.targets[0].tolist()):
            found[target] = probes(batch)[:, :, place].detach().numpy()
    assert sorted(found) == list(range(len(own)))
    for target, edge in enumerate(own.edges):
        text = own.sources[own.texts[target]]
        spans = [edge.first] + ([edge.second] if edge.second else [])
        places = [(text.word_of.index(a), len(text) - text.word_of[::-1].index(b - 1)) for a, b in spans]
        for seed in range(2):
            for probe, seen in enumerate(shown):
                one = {name: value[seed, probe].detach().numpy() for name, value in probes.parameters.items()}
                np.testing.assert_allclose(
                    found[target][seed, probe], _plain(one, states[own.texts[target]], places, seen), rtol=1e-9, atol=1e-10
                )


def _trained(
    states: HiddenStates, own: Items, shown: list[tuple[int, ...]], seeds: list[int], variants: list[np.ndarray], recipe: EdgeRecipe
) -> tuple[Probes, np.ndarray, np.ndarray]:
    feeder = Feeder(StateRows(states, CPU), own, variants, torch.float64)
    probes = Probes(Shape(LAYERS, SIZE, own.slots, 2, 8), shown * len(variants), seeds, CPU, torch.float64)
    variant = torch.arange(len(variants)).repeat_interleave(len(shown))
    units = np.zeros(len(own), dtype=np.int64)
    done = train(probes, feeder, variant, lambda: f1(counts(probes, feeder, variant, np.ones(2, bool), units).sum(2)), recipe)
    return probes, done.score, done.steps


@pytest.mark.parametrize("pairs", [False, True])
def test_a_probe_trained_with_others_equals_the_probe_trained_alone(pairs: bool) -> None:
    states, own = _world(pairs)
    permuted = own.labels[np.random.default_rng(1).permutation(len(own))]
    recipe = EdgeRecipe(rate=0.02, batch=4, checks=8, check_every=3, stop_after=3, clip=0.05)  # so small that gradients are clipped
    shown = [*cumulative(LAYERS), *single(LAYERS)]
    many, scores, steps = _trained(states, own, shown, [5, 6, 7], [own.labels, permuted], recipe)
    assert len(set(steps.ravel().tolist())) > 1  # not all probes are best at the same step
    for seed, probe, labels in ((0, 0, own.labels), (2, 2, own.labels), (1, 4, own.labels), (1, 1, permuted)):
        alone, score, step = _trained(states, own, [shown[probe]], [[5, 6, 7][seed]], [labels], recipe)
        place = probe + (len(shown) if labels is permuted else 0)
        assert (score[0, 0], step[0, 0]) == (scores[seed, place], steps[seed, place])
        for name, value in many.parameters.items():
            torch.testing.assert_close(alone.parameters[name][0, 0], value[seed, place], rtol=0, atol=1e-5, msg=name)


def test_finished_probes_are_left_out_of_further_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of probes per step decreases, and each probe ends as if it were trained alone."""
    states, own = _world(False)
    recipe = EdgeRecipe(rate=0.02, batch=4, checks=8, check_every=3, stop_after=2)
    shown = [*cumulative(LAYERS), *single(LAYERS)]
    sizes: list[int] = []
    stepped = Adam.step

    def step(adam: Adam, rate: torch.Tensor) -> None:
        sizes.append(rate.shape[1])
        stepped(adam, rate)

    monkeypatch.setattr(Adam, "step", step)
    many, scores, steps = _trained(states, own, shown, [5], [own.labels], recipe)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == len(shown) > sizes[-1]
    for probe, seen in enumerate(shown):
        alone, score, best = _trained(states, own, [seen], [5], [own.labels], recipe)
        assert (score[0, 0], best[0, 0]) == (scores[0, probe], steps[0, probe])
        for name, value in many.parameters.items():
            torch.testing.assert_close(alone.parameters[name][0, 0], value[0, probe], rtol=0, atol=1e-5, msg=name)


def test_probes_learn_labels_only_from_the_layer_that_encodes_them() -> None:
    states, own = _world(False, texts=80)
    probes, scores, _ = _trained(
        states, own, [(0,), (2,), (0, 1, 2)], [0], [own.labels], EdgeRecipe(rate=0.02, batch=16, checks=25, check_every=5, stop_after=9)
    )
    assert scores[0, 1] > 0.95 > 0.85 > scores[0, 0]
    assert probes.weights[0, 2].argmax() == 2
    assert probes.weights[0, 2, 2] > 0.5


def test_checks_follow_epochs_but_are_at_least_25_steps_apart() -> None:
    """Nine texts in batches of four: an epoch has three steps. 30 texts in batches of one: an epoch has 30 steps."""
    for texts, batch, every in ((9, 4, 25), (30, 1, 30)):
        states, own = _world(False, texts)
        _, _, steps = _trained(states, own, [(2,)], [0], [own.labels], EdgeRecipe(batch=batch, checks=1))
        assert steps.tolist() == [[every]]


@pytest.mark.parametrize("pairs", [False, True])
def test_the_linear_baseline_is_a_logistic_regression(pairs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Span vectors equal means that are computed one by one; weights and decisions equal those of scikit-learn."""
    states, own = _world(pairs, texts=60)
    vectors = span_vectors(StateRows(states, CPU), own, 2)
    for target, edge in enumerate(own.edges):
        text = own.sources[own.texts[target]]
        spans = [edge.first] + ([edge.second] if edge.second else [])
        tokens = [[token for token, word in enumerate(text.word_of) if a <= word < b] for a, b in spans]
        means = np.concatenate([states[own.texts[target]][2, places].mean(0) for places in tokens])
        np.testing.assert_allclose(vectors[target], means, atol=1e-6)
    monkeypatch.setattr(linear, "STEPS", 1000)
    monkeypatch.setattr(linear, "LEAST", 1e-12)
    weights = fitted(vectors, torch.from_numpy(own.labels).float(), 4.0, torch.zeros(vectors.shape[1] + 1, 2))
    sklearn = [LogisticRegression(C=0.25, tol=1e-8).fit(vectors.numpy(), column) for column in own.labels.T]
    np.testing.assert_allclose(weights[:-1].T, [one.coef_[0] for one in sklearn], atol=2e-3)
    np.testing.assert_allclose(weights[-1], [one.intercept_[0] for one in sklearn], atol=2e-3)

    swapped = np.random.default_rng(1).random(len(own)) < 0.2  # so that neither the largest nor the smallest penalty is best
    parts = _parts(replace(own, labels=own.labels ^ swapped[:, None]))
    centre, scale = vectors[: len(parts["train"])].mean(0), vectors[: len(parts["train"])].std(0, correction=0)
    scaled = {name: ((span_vectors(StateRows(states, CPU), part, 2) - centre) / scale).numpy() for name, part in parts.items()}
    losses, decisions = [], []
    for penalty in linear.PENALTIES:
        sklearn = [LogisticRegression(C=1 / penalty, tol=1e-8).fit(scaled["train"], column) for column in parts["train"].labels.T]
        losses.append(sum(log_loss(parts["held"].labels[:, k], one.predict_proba(scaled["held"])) for k, one in enumerate(sklearn)))
        decisions.append(np.stack([one.predict(scaled["dev"]) for one in sklearn], axis=1))
    best = next(place for place, loss in enumerate(losses) if loss <= min(losses[place + 1 : place + 2], default=math.inf))
    assert 0 < best < len(losses) - 1
    true, found = parts["dev"].labels, decisions[best]
    expected = [np.sum(found & true), np.sum(found & ~true), np.sum(~found & true)]
    units = np.zeros(len(parts["dev"]), dtype=np.int64)
    np.testing.assert_array_equal(linear_counts(StateRows(states, CPU), parts, 2, np.ones(2, bool), units), [expected])


def _parts(own: Items) -> dict[str, Items]:
    bounds = {"train": range(25), "held": range(25, 40), "dev": range(40, 60)}
    return {name: own.of_texts(texts) for name, texts in bounds.items()}


def test_the_linear_baseline_learns_labels_only_from_the_layer_that_encodes_them() -> None:
    """Labels depend on the last layer. Decisions are counted per document, and only for the labels that are scored."""
    states, own = _world(False, texts=60)
    parts = _parts(own)
    dev, units = parts["dev"], parts["dev"].texts - 40
    first, last = (linear_counts(StateRows(states, CPU), parts, layer, np.ones(2, bool), units) for layer in (0, 2))
    assert f1(last.sum(0)) > 0.85 > 0.7 > f1(first.sum(0))
    np.testing.assert_array_equal(last[:, [0, 2]].sum(1), np.bincount(units))  # each target has one label: found or missed
    one = linear_counts(StateRows(states, CPU), parts, 2, np.array([True, False]), units)
    np.testing.assert_array_equal(one[:, [0, 2]].sum(1), np.bincount(units, dev.labels[:, 0]))


def test_a_warning_names_layers_in_which_the_linear_baseline_beats_a_probe() -> None:
    """By the interval of the difference or, if there is none, by a difference of at least half a point."""
    nan = math.nan
    rows = [  # task, probe, layer, difference, its upper bound
        ("pos", "cumulative", 0, -0.021, -0.004), ("pos", "cumulative", 1, 0.01, 0.02), ("pos", "single", 0, -0.021, -0.004),
        ("pos", "single", 1, -0.01, 0.002), ("pos", "single", 2, 0.03, nan), ("pos", "single", 3, -0.032, nan),
        ("pos", "single", 4, -0.004, nan), ("deps", "single", 0, -0.004, nan), ("srl", "single", 5, -0.006, nan),
    ]  # fmt: skip
    names = ("task", "probe", "layer", "beyond_linear", "beyond_linear_high")
    first, second = linear_warnings(Table.of({name: [row[place] for row in rows] for place, name in enumerate(names)}))
    assert first.startswith(
        "pos: a logistic regression on one layer scores up to 3.2 points more than the probe (cumulative: layer 0; single: layers 0, 3). "
    )
    assert second.startswith("srl: a logistic regression on one layer scores up to 0.6 points more than the probe (single: layer 5). ")
    assert second.endswith("use more texts (--limit) or train for longer (--checks)")


def test_mixing_weights_are_a_softmax_over_the_visible_layers() -> None:
    assert cumulative(3) == [(0,), (0, 1), (0, 1, 2)]
    assert single(3) == [(0,), (1,), (2,)]
    numbers = torch.tensor([[0.0, math.log(3), 5.0]]).expand(3, 3)
    np.testing.assert_allclose(shares(numbers, visible(cumulative(3), 3))[1], [0.25, 0.75, 0])


def test_loss_is_averaged_over_targets_and_labels_without_padding() -> None:
    states, own = _world(False)
    feeder = _feeder(states, own)
    first, second = own.laid[:1], own.laid[1:4]  # one batch is padded to the size of the other
    batch = feeder.batch([first, second])
    logits = torch.randn(2, 1, batch.real.shape[1], 2, dtype=torch.float64)
    found = loss(logits, batch, torch.zeros(1, dtype=torch.int64))
    for seed, texts in enumerate((first, second)):
        targets = np.concatenate([text.targets for text in texts])
        chance = 1 / (1 + np.exp(-logits[seed, 0, : len(targets)].numpy()))
        true = own.labels[targets]
        expected = -(true * np.log(chance) + ~true * np.log(1 - chance)).mean()
        assert found[seed, 0].item() == pytest.approx(expected)


def test_decisions_are_counted_by_document_and_by_label() -> None:
    states, own = _world(True)
    feeder = _feeder(states, own)
    probes = Probes(Shape(LAYERS, SIZE, 2, 2, 5), cumulative(LAYERS), [0, 1], CPU, torch.float64)
    believed = beliefs(probes, feeder)
    assert believed.shape == (2, LAYERS, len(own), 2)
    counted = np.array([False, True])
    found = counts(probes, feeder, torch.zeros(LAYERS, dtype=torch.int64), counted, own.texts)
    for seed in range(2):
        for probe in range(LAYERS):
            for text in range(9):
                predicted = believed[seed, probe, own.texts == text, 1] >= 0.5
                true = own.labels[own.texts == text, 1]
                expected = [(predicted & true).sum(), (predicted & ~true).sum(), (~predicted & true).sum()]
                assert found[seed, probe, text].tolist() == expected
    np.testing.assert_allclose(f1(np.array([[3, 1, 2], [0, 0, 0], [0, 4, 0.0]])), [2 / 3, 0, 0])


def test_a_task_with_targets_of_one_and_of_two_spans_is_refused() -> None:
    edges = [Edge("odd", ("a",), (0, 1)), Edge("odd", ("a",), (0, 1), (1, 2))]
    with pytest.raises(RunError, match="some targets of odd have two spans"):
        items("odd", [_text(0, [1, 1])], [edges])
