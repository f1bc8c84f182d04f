"""QR scores: worked out by hand on a small map, on keyphrases, with and without maps, and of the embedded language
model.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.annotation import Annotated, Annotation
from headscope.core.batch import CLS, WORD, MapBatch, stack
from headscope.core.document import PASSAGE, Document, Edge, Sentence, Word
from headscope.core.heads import HeadLayout, Site
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.batches import token_side
from headscope.encoding.passages import marked_words
from headscope.encoding.texts import Encoder
from headscope.encoding.words import WordGroups
from headscope.engine.spec import make_spec
from headscope.errors import HeadscopeError
from headscope.gallery.examples import window
from headscope.measures import Retrieval
from headscope.measures.retrieval import PASSAGE as GOLD
from headscope.measures.retrieval import QUESTION, MarkTest, other_passage
from headscope.models.load import load
from headscope.models.model import Model
from headscope.report.patterns import retrieval_sentences
from headscope.runs.execute import execute
from headscope.stats.bootstrap import poisson_weights
from helpers.architectures import build
from helpers.families import FAMILIES

FORMS = ("the", "key", "is", "red", "and", "the", "key", "is")
MAP = np.array(
    [  # <s>  the  key  is   red  and  the  key  is
        [1.0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0.5, 0.5, 0, 0, 0, 0, 0, 0, 0],
        [0.5, 0.25, 0.25, 0, 0, 0, 0, 0, 0],
        [0.5, 0, 0, 0.5, 0, 0, 0, 0, 0],
        [0.2, 0.2, 0.2, 0.2, 0.2, 0, 0, 0, 0],
        [0.5, 0, 0, 0, 0.5, 0, 0, 0, 0],
        [0.2, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0, 0],
        [0.3, 0.0, 0.0, 0.0, 0.5, 0.1, 0.0, 0.1, 0],
        [0.1, 0.0, 0.0, 0.1, 0.8, 0.0, 0.0, 0.0, 0],
    ]
)


def annotation(edges: tuple[Edge, ...] = (), keywords: tuple[bool, ...] = (), cut: int = 5) -> Annotation:
    words = tuple(map(Word, FORMS))
    document = Document("d", (Sentence(words[:cut]), Sentence(words[cut:])), edges=edges)
    return Annotated(document, (), keywords).select(range(len(FORMS)))


def table(text: Annotation, causal: bool = True) -> dict[str, tuple[float, int, float]]:
    """Return value, n and baseline of each quantity on MAP."""
    layout = HeadLayout((Site("decoder" if causal else "encoder", 0, 1, 1, "layer"),))
    side = stack([("<s>", *FORMS)], [(CLS, *[WORD] * len(FORMS))], [text])
    measure = Retrieval()
    state = measure.start(layout, 2)
    maps = torch.from_numpy(MAP[None, None].astype(np.float32))
    weigh = partial(poisson_weights, replicates=2)
    measure.update(state, MapBatch(0, layout, maps, side, side, weigh, documents=("d",), slices=np.zeros(1, dtype=np.int64)))
    rows = measure.tables(state, layout)["retrieval"]
    numbers = zip(rows["value"], rows["n"], rows["baseline"], strict=True)
    return dict(zip(rows["quantity"], numbers, strict=True))


def test_qr_is_the_weight_on_the_passage_averaged_over_the_question() -> None:
    # The question is the last three words, the passage "is red": rows 6, 7, 8 and columns 3, 4.
    found = table(annotation((Edge(PASSAGE, ("gold",), (5, 8), (2, 4)),)))
    assert_allclose(found["qr"][0], ((0.1 + 0.1) + (0.0 + 0.5) + (0.1 + 0.8)) / 3, atol=1e-6)
    assert found["qr"][1] == 1
    # Under even attention, rows 6, 7 and 8 see 7, 8 and 9 tokens.
    assert_allclose(found["qr"][2], (2 / 7 + 2 / 8 + 2 / 9) / 3, atol=1e-6)
    # The other passage: "the key" is the only other pair of adjacent words before the question.
    assert_allclose(found["qr_other"][0], ((0.1 + 0.1) + 0 + 0) / 3, atol=1e-6)


def test_several_questions_and_passages_are_combined() -> None:
    edges = (Edge(PASSAGE, ("gold",), (6, 7), (1, 2)), Edge(PASSAGE, ("gold",), (7, 8), (3, 4)))
    found = table(annotation(edges))
    assert_allclose(found["qr"][0], ((0.0 + 0.5) + (0.0 + 0.8)) / 2, atol=1e-6)


def test_the_last_sentence_is_the_question_and_earlier_keyphrases_are_the_passage() -> None:
    keys = (False, True, False, True, False, False, True, False)
    marked = marked_words(annotation((), keys))
    assert marked.question.tolist() == [False] * 5 + [True] * 3
    assert marked.passage.tolist() == [False, True, False, True, False, False, False, False]  # the second "key" is in the question
    found = table(annotation((), keys))
    assert_allclose(found["qr"][0], ((0.1 + 0.1) + 0.5 + 0.8) / 3, atol=1e-6)


def test_marked_passages_take_precedence_over_keyphrases() -> None:
    marked = marked_words(annotation((Edge(PASSAGE, ("gold",), (5, 8), (2, 4)),), (True,) * 8))
    assert np.flatnonzero(marked.passage).tolist() == [2, 3]


@pytest.mark.parametrize(
    "text",
    [annotation(), annotation((), (False,) * 5 + (True,) * 3), annotation((Edge("other", ("x",), (5, 8), (2, 4)),))],
    ids=["nothing marked", "keyphrases of the last sentence only", "edges of another task"],
)
def test_a_text_without_question_or_passage_does_not_count(text: Annotation) -> None:
    assert [n for _, n, _ in table(text).values()] == [0, 0]


def test_marks_that_extend_beyond_the_text_are_dropped() -> None:
    document = Document("d", (Sentence(tuple(map(Word, FORMS))),), edges=(Edge(PASSAGE, ("gold",), (5, 8), (2, 4)),))
    assert Annotated(document).select(range(7)).passages == ()
    assert Annotated(document).select(range(1, 8)).passages == (Edge(PASSAGE, ("gold",), (4, 7), (1, 3)),)


def test_the_other_passage_has_the_same_length_and_another_place() -> None:
    words, question, passage = (np.zeros(40, dtype=bool) for _ in range(3))
    words[1:] = True
    question[30:33] = True
    passage[[5, 6, 7, 12, 13]] = True
    seen = set()
    for key in range(60):
        other = other_passage(words, question, passage, key)
        places = np.flatnonzero(other)
        assert len(places) == 5
        assert not (other & (passage | question)).any()
        assert places[0] >= 1  # never at the first position
        assert places[-1] < 30  # before the question
        seen.add(tuple(places.tolist()))
    assert len(seen) > 30
    question[:], question[2:4] = False, True  # if the passage follows the question, any other place is allowed
    assert any(np.flatnonzero(other_passage(words, question, passage, key))[-1] > 30 for key in range(60))


def test_there_is_no_other_passage_if_none_fits() -> None:
    words = np.ones(8, dtype=bool)
    question, passage = np.arange(8) > 5, (np.arange(8) > 1) & (np.arange(8) < 5)
    assert not other_passage(words, question, passage, 0).any()  # only 1 and 5 are free, and the passage has three adjacent words
    assert not other_passage(words, question, np.zeros(8, dtype=bool), 0).any()


def test_all_tokens_of_marked_words_are_marked(mini_decoder: Model) -> None:
    texts = list(Encoder(mini_decoder.tokenizer, "document", 512).texts(read("needles:48x3"), Tally()))
    side, words = token_side(texts), WordGroups.build(texts, torch.device("cpu")).side
    for row, text in enumerate(texts):
        for which, size in ((QUESTION, 6), (GOLD, 10)):
            tokens = np.flatnonzero(side.chosen(which, MarkTest(which))[row])
            own = [text.word_of[token] for token in tokens]
            assert len(set(own)) == words.chosen(which, MarkTest(which))[row].sum() == size
            assert own == sorted(own)
            assert all((word in own) == (token in tokens) for token, word in enumerate(text.word_of) if word >= 0)
        forms = [text.words[word].form for word in dict.fromkeys(text.word_of[token] for token in tokens)]
        assert forms[:4] == ["The", "secret", "words", "of"]
        assert " ".join(forms[6:9]) == text.metadata["answer"]


@pytest.mark.parametrize("name", ["mistral", "gpt2"])
def test_runs_without_maps_give_the_same_numbers_as_runs_with_maps(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = FAMILIES["gpt2"]()
    build(name, vocabulary=len(tokens)).save_pretrained(tmp_path / name)
    tokens.save_pretrained(tmp_path / name)
    model = load(tmp_path / name)
    entry = {"passages": ["it was a cat", "the dog sat", "it ran"], "question": "the dog"}
    (tmp_path / "questions.jsonl").write_text("\n".join(json.dumps({**entry, "gold": gold}) for gold in (0, 1, [0, 2])))
    for corpus in (str(tmp_path / "questions.jsonl"), "sampler"):
        settings = {"corpus": corpus, "measures": ["retrieval"], "limit": 40, "max_length": 60, "replicates": 10}
        with monkeypatch.context() as patch:
            fused = execute(make_spec(settings), model=model, gallery=0)
            patch.setattr(Model, "needs_maps", "to compare")
            mapped = execute(make_spec(settings), model=model, gallery=0)
        assert max(fused["retrieval"]["n"]) > 0
        for column in ("value", "baseline", "n"):
            assert_allclose(fused["retrieval"][column], mapped["retrieval"][column], rtol=2e-5, atol=1e-6, err_msg=column)


def test_heads_of_the_embedded_model_retrieve_and_those_of_random_weights_do_not() -> None:
    settings = {"model": "mini-decoder", "corpus": "needles:48x10", "measures": ["retrieval"], "replicates": 100}
    trained, control = (execute(make_spec({**settings, "weights": weights}), gallery=0) for weights in ("trained", "random"))
    rows = {str(trained.head_of(row)): row for row in trained["retrieval"].where(quantity="qr")}
    assert rows["7-4"]["low"] > 2 * rows["7-4"]["baseline"]
    other = {str(trained.head_of(row)): row for row in trained["retrieval"].where(quantity="qr_other")}
    assert other["7-4"]["high"] < rows["7-4"]["baseline"]
    for row in control["retrieval"].where(quantity="qr"):
        assert_allclose(row["value"], row["baseline"], atol=0.05)
    (sentence,) = retrieval_sentences(trained)
    assert sentence.startswith("Retrieval: ")
    assert f"7-4 ({rows['7-4']['value']:.2f} [" in sentence
    assert f"to another passage {other['7-4']['value']:.2f}" in sentence
    assert retrieval_sentences(control)[0].startswith("Retrieval: no head significantly attends from the question")


def test_the_window_of_a_long_text_contains_the_question_or_the_passage(mini_decoder: Model) -> None:
    for text in Encoder(mini_decoder.tokenizer, "document", 512).texts(read("needles:96x2:0,100"), Tally()):
        start, end = window(text, Retrieval(), "qr", 30)
        side = token_side([text])
        held = [set(np.flatnonzero(side.chosen(which, MarkTest(which))[0])) <= set(range(start, end)) for which in (QUESTION, GOLD)]
        assert any(held)
        assert all(held) == (text.metadata["depth"] == 100)  # both, if the needle is next to the question


def test_overlong_texts_are_dropped_and_not_truncated() -> None:
    with pytest.raises(HeadscopeError, match="5 overlong texts dropped"):
        hs.run("mini-decoder", "needles:96x5", ["retrieval"], max_length=40, gallery=0)


def test_a_corpus_without_passages_and_given_maps_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("It rained all day.")
    with pytest.raises(HeadscopeError, match=r"retrieval needs passages or keyphrases, and .*plain.txt has none"):
        hs.run("mini-decoder", tmp_path / "plain.txt", ["retrieval"], gallery=0)
    with pytest.raises(HeadscopeError, match="do not come with maps"):
        hs.measure(MAP[None, None], ["<s>", *FORMS], ["retrieval"], causal=True)
