"""Influence between the words of one text: the numbers of the flow study, in the layout of an attention map."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.document import Document, Sentence, Word
from headscope.corpora import Corpus
from headscope.encoding.tokenizer import Tokenizer
from headscope.engine.typed_text import typed
from headscope.errors import RunError
from headscope.gallery.texts import look
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.studies.flow.grouping import to_words
from headscope.studies.flow.influence import Influence, find_layers, find_measures
from headscope.studies.flow.work import Precision
from helpers.architectures import build
from helpers.families import FAMILIES

WORDS = ("The", "cats", "playing", "on", "mats")
KINDS = ("A", "G", "G*", "rollout", "norms")


@pytest.fixture(scope="module")
def bert() -> Model:
    tokens = FAMILIES["wordpiece"]()
    network = build("bert", vocabulary=len(tokens))
    return Model("bert", network, Tokenizer(tokens), *find_sites(network))


def test_influence_equals_the_numbers_of_the_flow_study(bert: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view has the numbers that a study of the same sentence observes, sketches of G* included."""
    seen = []
    monkeypatch.setattr(Precision, "observe", lambda self, text, found: seen.append((text, found)))
    monkeypatch.setattr(Precision, "tables", lambda self: {})
    tags = ("DET", "NOUN", "VERB", "ADP", "NOUN")
    words = tuple(Word(form, upos=tag) for form, tag in zip(WORDS, tags, strict=True))
    hs.flow(bert, Corpus.of([Document("d", (Sentence(words),))]), parts=["classes"], measures=list(KINDS), replicates=0, max_length=32)
    ((text, found),) = seen
    view = hs.view(bert, " ".join(WORDS), specials="hide")
    assert view.text.pieces == text.pieces
    for kind in KINDS:
        between = to_words(found.values[kind], text.word_of, len(text.words))
        for layer in (1, 2):
            assert_allclose(view.influence(kind, layer).weights, between[layer - 1].T, rtol=1e-12)
        assert_allclose(view.influence(kind).weights, between.mean(0).T, rtol=1e-12)
        assert view.influence(kind).rows == WORDS


def test_attention_and_rollout_equal_a_plain_computation(bert: Model) -> None:
    encoded = typed(bert, " ".join(WORDS)).encoded
    assert len(encoded) > len(WORDS) + 2, "some word has several tokens"
    maps = look(bert, encoded)
    attention = [np.mean([weights for head, weights in maps.items() if head.layer == layer], axis=0) for layer in (0, 1)]
    first = 0.5 * attention[0] + 0.5 * np.eye(len(encoded))
    rollout = [first, (0.5 * attention[1] + 0.5 * np.eye(len(encoded))) @ first]
    tokens_of = [[place for place, word in enumerate(encoded.word_of) if word == number] for number in range(len(WORDS))]
    groups = [[0], *tokens_of, [len(encoded) - 1]]
    influence = Influence(bert, encoded)
    for kind, layers in {"A": attention, "rollout": rollout}.items():
        expected = [[[np.mean([layer[i, j] for i in row for j in column]) for column in groups] for row in groups] for layer in layers]
        (measure,) = find_measures([kind])
        assert_allclose(influence.grid(measure, 2).weights, expected[1], atol=1e-6)
        assert_allclose(influence.grid(measure, "mean").weights, np.mean(expected, 0), atol=1e-6)
        assert_allclose(influence.grid(measure, 1, "token").weights, layers[0], atol=1e-6)
    assert influence.grid("A").rows == ("[CLS]", *WORDS, "[SEP]")


def test_g_of_one_layer_equals_the_jacobian_by_autograd(bert: Model) -> None:
    encoded = typed(bert, " ".join(WORDS)).encoded
    with torch.no_grad():
        states = bert.network(**bert.inputs([encoded]), output_hidden_states=True).hidden_states[0]
    layer = bert.network.encoder.layer[0]

    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x[None])[0], states[0])  # type: ignore[no-untyped-call]
    expected = jacobian.square().sum((1, 3)).sqrt().numpy()  # over the features of targets and of sources
    assert_allclose(Influence(bert, encoded).grid("G", 1, "token").weights, expected, rtol=1e-3)


def test_a_sketch_has_a_note_of_its_error_and_an_exact_measure_has_none(bert: Model) -> None:
    exact, mini = Influence(bert, typed(bert, "The cats").encoded), hs.load("mini")
    assert exact.note("G*") == "", "exact, because there are no more features than probes"
    influence = Influence(mini, typed(mini, "cats").encoded)
    assert re.fullmatch(r"G\*: sketched with 32 probes: a relative standard error of \d+\.\d% per entry on average", influence.note("G*"))
    assert (exact.note("G"), exact.note("A")) == ("", "")
    assert influence.settings("G*") == "measure:G*|norm:frobenius|probes:32|seed:0"
    assert exact.settings("G") == "measure:G|norm:frobenius"
    assert exact.settings("rollout") == "measure:rollout"


def test_measures_and_layers_are_found_and_unknown_ones_are_refused(bert: Model) -> None:
    assert find_measures(["norm", "G*", "norms"]) == ("norms", "G*")
    assert find_layers([2, "mean", 2], bert) == (2, "mean")
    for names, message in ((["H"], "measure 'H' is unknown. Use one of A, G, G*, rollout, maxflow, norms"), ([], "no measure is named")):
        with pytest.raises(RunError, match=re.escape(message)):
            find_measures(names)
    with pytest.raises(RunError, match=re.escape("bert has no layer 3. Its layers are 1 to 2; mean is their mean")):
        find_layers([3], bert)
