"""The score of Wu et al. worked out by hand, greedy decoding, rankings, and the study on the embedded model."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.annotation import Annotation
from headscope.core.batch import WORD
from headscope.core.document import Word
from headscope.core.heads import HeadId, HeadLayout, Site
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import HeadscopeError
from headscope.models.gates import gated, gates_without
from headscope.models.generation import greedy
from headscope.models.load import load
from headscope.models.model import Model
from headscope.studies.retrieval.copying import chance, copied, copy_scores
from headscope.studies.retrieval.ranking import first, folds, held_out_best, overlaps, random_heads
from headscope.studies.retrieval.samples import RetrievalSample, recall, sample_of


@pytest.fixture(scope="module")
def decoder() -> Model:
    return load("mini-decoder", head=True)


def sample(ids: list[int], passage: list[int], answer: tuple[int, ...]) -> RetrievalSample:
    numbers = np.array(ids, dtype=np.int64)
    words = tuple(Word(str(token)) for token in ids)
    size = len(ids)
    text = Encoded("t", Annotation.of_sentence("d", words), numbers, numbers * 0, (WORD,) * size, tuple(range(size)), ("",) * size)
    return RetrievalSample(text, np.isin(np.arange(size), passage), answer, "")


# The prompt is 9 5 6 7 8 5. Positions 1 to 3 are the passage (5 6 7); the right answer is 6 7.
PROMPT = sample([9, 5, 6, 7, 8, 5], [1, 2, 3], (6, 7))


def test_a_head_copies_a_token_if_it_attends_most_to_that_token_in_the_passage() -> None:
    most = np.array(
        [
            [2, 3],  # both tokens
            [2, 6],  # in the second step, a written token outside the passage
            [1, 3],  # in the first step, another token of the passage
            [0, 4],
        ]
    )
    ids = PROMPT.followed_by((6, 7)).ids
    assert copied(most, ids, PROMPT.passage, (6, 7)).tolist() == [[True, True], [True, False], [False, True], [False, False]]


@pytest.mark.parametrize(("written", "scores"), [((6, 7), [1.0, 0.5]), ((6, 8), [0.5, 0.5]), ((6,), [0.5, 0.5]), ((), [0, 0])])
def test_copy_scores_of_scripted_attention_equal_hand_computed_values(written: tuple[int, ...], scores: list[float]) -> None:
    """Two layers of one head: in the two steps, one head attends to positions 2 and 3, the other to position 2."""
    layout = HeadLayout((Site("decoder", 0, 1, 1, "a"), Site("decoder", 1, 1, 1, "b")))

    def stream(inputs: Any, take: Any) -> None:
        size = 6 + len(written)
        for index, script in enumerate(([2, 3], [2, 2])):
            weights = torch.full((1, 1, size, size), 0.01)
            for step, place in enumerate(script[: len(written)]):
                weights[0, 0, 5 + step, place] = 0.9
            take(index, weights, None, None)

    model: Any = SimpleNamespace(layout=layout, inputs=lambda texts: {}, stream=stream)
    assert_allclose(copy_scores(model, PROMPT, written), scores)


def test_the_score_of_chance_equals_hand_computed_values() -> None:
    # First, 6 is once in the passage, and 6 tokens are visible; then 7 is once in it, and 7 tokens are visible.
    assert_allclose(chance(PROMPT, (6, 7)), (1 / 6 + 1 / 7) / 2)
    assert_allclose(chance(sample([5, 6, 6, 1], [0, 1, 2], (6,)), (6,)), 2 / 4)
    assert chance(PROMPT, (8, 8)) == 0


@pytest.mark.parametrize(
    ("right", "written", "share"),
    [("red green blue", "Green, red!", 2 / 3), ("a a b", "a c", 1 / 3), ("x", "", 0.0), ("", "x", 0.0), ("one two", "two one two", 1.0)],
)
def test_recall_is_the_share_of_right_words_that_were_written(right: str, written: str, share: float) -> None:
    assert_allclose(recall(right, written), share)


def test_heads_are_sorted_by_score_and_documents_are_split_into_two_parts() -> None:
    assert first(np.array([0.2, 0.5, np.nan, 0.5, 0.0]), 3).tolist() == [1, 3, 0]
    names = [f"d{number}" for number in range(9)]
    parts = folds([*names, "d0"], 0)
    assert sorted(np.bincount(parts[:9])) == [4, 5]
    assert parts[9] == parts[0]
    assert folds(names[::-1], 0).tolist() == parts[:9][::-1].tolist()
    # Head 0 is best on part 0, and head 1 on part 1. Each document is scored by the best head of the other part.
    scores = np.array([[1.0, 0.2], [0.8, 0.4], [0.1, 0.9]])
    assert held_out_best(scores, np.array([0, 0, 1])).tolist() == [0.2, 0.4, 0.1]


def test_first_heads_overlap_fully_for_equal_scores_and_partly_for_noise() -> None:
    names = [f"d{number}" for number in range(12)]
    alike = np.tile([0.9, 0.5, 0.1, 0.0], (12, 1))
    for row in overlaps(alike, names, (1, 2), 50, 0):
        assert (row.value, row.low, row.high, row.baseline) == (1.0, 1.0, 1.0, row.k / 4)
    assert {(row.resampled, row.documents) for row in overlaps(alike, names, (1,), 50, 0)} == {
        ("with replacement", 12), ("without replacement", 5), ("without replacement", 10),
    }  # fmt: skip
    noise = np.random.default_rng(0).random((12, 40))
    shares = {(row.resampled, row.documents): row.value for row in overlaps(noise, names, (5,), 200, 0)}
    assert 5 / 40 < shares["without replacement", 5] < shares["without replacement", 10] < 1


def test_random_heads_exclude_the_given_heads() -> None:
    draws = [random_heads(10, 3, [0, 1, 2], 0, draw) for draw in range(20)]
    assert all(len(set(heads)) == 3 and not {0, 1, 2} & set(heads) for heads in draws)
    assert len({tuple(heads) for heads in draws}) > 10
    assert random_heads(10, 2, [], 0, 1) == random_heads(10, 5, [], 0, 1)[:2]


def test_greedy_decoding_writes_the_most_probable_token_of_full_passes(decoder: Model) -> None:
    texts = list(Encoder(decoder.tokenizer, "document", 512).texts(read("needles:40x2"), Tally()))
    prompts = [text.ids.tolist() for text in texts]
    written = [made.ids for made in greedy(decoder, prompts, 4)]
    whole: Any = decoder.whole
    for prompt, ids in zip(prompts, written, strict=True):
        text = list(prompt)
        for token in ids:
            with torch.inference_mode():
                assert int(whole(input_ids=torch.tensor([text])).logits[0, -1].argmax()) == token
            text.append(token)
    assert all(len(ids) == 4 for ids in written)


def test_decoding_stops_at_an_end_token(decoder: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    text = next(Encoder(decoder.tokenizer, "document", 512).texts(read("needles:40x1"), Tally()))
    ids = greedy(decoder, [text.ids.tolist()], 4)[0].ids
    monkeypatch.setattr("headscope.models.generation.end_tokens", lambda model: frozenset({ids[2]}))
    assert greedy(decoder, [text.ids.tolist()], 4)[0].ids == ids[: ids.index(ids[2])]


def test_samples_have_a_passage_and_an_answer_or_are_skipped_with_a_reason(decoder: Model, tmp_path: Path) -> None:
    sea = {"passages": ["The colour of the sea: deep blue.", "Nothing."], "gold": 0, "question": "The colour of the sea:"}
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, [{**sea, "answer": "deep blue."}, sea])))
    encoder = Encoder(decoder.tokenizer, "document", 512)
    marked, unanswered = list(encoder.texts(read(path), Tally()))
    unmarked = next(encoder.texts(read([{"text": "unmarked", "answer": "x"}]), Tally()))
    assert sample_of(unmarked, decoder.tokenizer) == "texts skipped without a marked question and passage"
    assert sample_of(unanswered, decoder.tokenizer) == "texts skipped without an answer"
    found = sample_of(marked, decoder.tokenizer)
    assert isinstance(found, RetrievalSample)
    tokens = decoder.tokenizer.hf.decode(found.answer)
    assert tokens == " deep blue."
    passage = found.prompt.ids[found.passage].tolist()
    assert decoder.tokenizer.hf.decode(passage).strip() == "The colour of the sea: deep blue."
    assert passage[-len(found.answer) :] == list(found.answer)  # the same tokens as in the passage


@pytest.fixture(scope="module")
def study() -> Any:
    return hs.retrieval(corpus="needles:40x16", top=[2, 4], draws=2, replicates=100)


def test_the_strongest_heads_of_the_embedded_model_are_its_induction_heads(study: Any) -> None:
    table = study["retrieval_heads"]
    assert table["decoding"][0] == "greedy"
    rows = list(table.where(decoding="greedy"))
    assert [row["rank"] for row in rows] == list(range(1, 65))
    assert {f"{row['layer']}-{row['head']}" for row in rows[:4]} == {"7-4", "7-3", "5-3", "5-4"}
    assert rows[0]["low"] > 0.5 > 10 * rows[0]["baseline"]
    assert rows[0]["n"] == rows[0]["documents"] < 16 == table.where(decoding="forced")["n"][0]


def test_ablating_the_strongest_heads_removes_the_answers(study: Any) -> None:
    rows = {(row["k"], row["heads"]): row for row in study["retrieval_ablation"]}
    assert list(rows) == [(0, "none"), (2, "strongest"), (2, "random"), (4, "strongest"), (4, "random")]
    assert rows[4, "strongest"]["found"] == 0 < rows[4, "random"]["found"]
    assert rows[4, "strongest"]["found_high"] > 0  # no answers in 16 texts: the upper bound is above 0
    assert rows[4, "strongest"]["gained_low"] > rows[4, "random"]["gained_high"]
    assert rows[0, "none"]["gained"] == 0
    assert len(rows[2, "strongest"]["which"].replace(" / ", " ").split()) == 4


def test_ablated_answers_equal_those_of_gated_decoding(study: Any, decoder: Model) -> None:
    """All tokens of the answer are the most probable ones if and only if greedy decoding with gated heads writes the
    answer.
    """
    row = next(row for row in study["retrieval_ablation"] if (row["k"], row["heads"]) == (2, "strongest"))
    parts = [[HeadId.parse(name, "decoder") for name in part.split()] for part in row["which"].split(" / ")]
    texts = list(Encoder(decoder.tokenizer, "document", 512).texts(read("needles:40x16"), Tally()))
    part = folds([text.document for text in texts], 0)
    answered = []
    for text, own in zip(texts, part, strict=True):
        made = sample_of(text, decoder.tokenizer)
        assert isinstance(made, RetrievalSample)
        with gated(decoder, gates_without(decoder, parts[own])):
            answered.append(greedy(decoder, [made.prompt.ids.tolist()], len(made.answer))[0].ids == made.answer)
    assert_allclose(np.mean(answered), row["found"])


def test_without_answers_heads_are_ranked_by_forced_decoding_with_a_note() -> None:
    control = hs.retrieval(corpus="needles:24x7", top=1, draws=1, replicates=50, weights="random")
    assert set(control["retrieval_heads"]["decoding"]) == {"forced"}
    assert any("ranked by forced decoding" in note for note in control.results.manifest["notes"])
    assert max(control["retrieval_heads"]["score"]) < 0.5
    with pytest.raises(HeadscopeError, match="no question was answered"):
        hs.retrieval(corpus="needles:24x2", top=1, draws=1, replicates=0, weights="random", decoding="greedy")


def test_unsuitable_models_settings_and_corpora_are_refused() -> None:
    with pytest.raises(HeadscopeError, match="mini guesses masked words"):
        hs.retrieval("mini", "needles:32x4")
    with pytest.raises(HeadscopeError, match="besides the 64 strongest of 64"):
        hs.retrieval(corpus="needles:32x4", top=64)
    with pytest.raises(HeadscopeError, match=r"answer that fit: 0 \(4 overlong texts dropped"):
        hs.retrieval(corpus="needles:96x4", max_length=24)
    with pytest.raises(HeadscopeError, match="needs passages, and sampler has none"):
        hs.retrieval(corpus="sampler")
