"""Keywords in any text: windows, phrases and weights, compared with numbers worked out by hand and with the formula."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.document import Document, Sentence
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoder
from headscope.errors import EncodingError, HeadscopeError, ModelError, RunError
from headscope.models.model import Model
from headscope.studies.execute import execute
from headscope.studies.keywords.features import read_words
from headscope.studies.keywords.finder import Finder, centrality, learn, plain, windows
from headscope.studies.keywords.phrases import phrases, written
from headscope.widget.keywords import KeywordView
from helpers.families import document
from helpers.predicting import loaded

TEXTS = [
    "The cat sat on a mat , the cat !",
    "A dog , the cats .",
    "The dog sat on the mat .",
    "Cats play on a mat .",
    "The dog saw the cats playing .",
]
LONG = " ".join(TEXTS * 4).replace(" .", ".").replace(" ,", ",").replace(" !", "!")


def corpus(copies: int = 4) -> Corpus:
    """Texts in which `cat`, `cats` and `dog` are keyphrases."""
    return Corpus.of(
        replace(document(f"d{number}x{copy}", text), keyphrases=("cat", "cats", "dog"))
        for copy in range(copies)
        for number, text in enumerate(TEXTS)
    )


@pytest.fixture(scope="module")
def finder(bert_or_gpt2: Model) -> Finder:
    return learn(bert_or_gpt2, corpus(), "pets", folds=3)


def test_windows_overlap_by_half_and_centrality_counts_words_to_an_edge() -> None:
    assert windows([1] * 4, 4) == [(0, 4)]
    assert windows([1] * 10, 4) == [(0, 4), (2, 6), (4, 8), (6, 10)]
    assert windows([1] * 9, 4) == [(0, 4), (2, 6), (4, 8), (5, 9)]
    # The first window has 3 + 1 tokens. The next begins at the first word after half of them, the word of one token.
    # The last window extends back as far as fits.
    assert windows([3, 1, 3, 1], 4) == [(0, 2), (1, 3), (2, 4)]
    assert windows([4, 4, 4], 4) == [(0, 1), (1, 2), (2, 3)]
    assert centrality((0, 4), 10).tolist() == [3, 2, 1, 0]
    assert centrality((2, 6), 10).tolist() == [0, 1, 1, 0]
    assert centrality((6, 10), 10).tolist() == [0, 1, 2, 3]
    assert centrality((0, 3), 3).tolist() == [math.inf] * 3


def test_windows_contain_every_word_and_never_exceed_the_room() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        room = int(rng.integers(1, 20))
        sizes = rng.integers(1, room + 1, int(rng.integers(1, 60))).tolist()
        found = windows(sizes, room)
        assert all(0 <= start < end and sum(sizes[start:end]) <= room for start, end in found)
        assert {place for start, end in found for place in range(start, end)} == set(range(len(sizes)))
        assert all(first[0] < second[0] and first[1] < second[1] for first, second in pairwise(found))


def test_phrases_have_summed_weights_and_no_outer_function_words() -> None:
    """Punctuation and sentence ends separate phrases, function words at their ends are removed, and case is ignored."""
    text = "The theory of relativity, gravity waves. Waves of the Theory of relativity? In 1915"
    given = plain(text)
    forms = [word.form for word in given.words]
    assert forms == [
        "The",
        "theory",
        "of",
        "relativity",
        ",",
        "gravity",
        "waves",
        ".",
        "Waves",
        "of",
        "the",
        "Theory",
        "of",
        "relativity",
        "?",
        "In",
        "1915",
    ]
    assert len(given.sentences) == 3
    weights = np.array([0.9, 0.5, 0.5, 0.7, 0.9, 0.6, 0.8, 0.9, 0.4, 0.5, 0.5, 0.6, 0.3, 0.5, 0.9, 0.8, 0.9])
    found = phrases(given, weights, 0.3)
    assert [(one.text, one.places) for one in found] == [
        ("Waves of the Theory of relativity", ((8, 14),)),
        ("theory of relativity", ((1, 4),)),
        ("gravity waves", ((5, 7),)),
    ]
    assert [one.score for one in found] == pytest.approx([2.8, 1.7, 1.4])
    weights[10] = 0.1
    found = phrases(given, weights, 0.3)
    assert [(one.text, one.places) for one in found] == [
        ("theory of relativity", ((1, 4), (11, 14))),
        ("gravity waves", ((5, 7),)),
        ("Waves", ((8, 9),)),
    ]
    assert [one.score for one in found] == pytest.approx([3.1, 1.4, 0.4])
    assert phrases(given, np.zeros(len(forms)), 0.3) == []
    assert written(given, (3, 7)) == "relativity, gravity waves"


def test_texts_are_split_into_words_punctuation_and_paragraphs() -> None:
    found = plain("He said: “data mining (DM),\r\nisn't it Ann's?”\r\n\r\nYes.")
    forms = ["He", "said", ":", "“", "data", "mining", "(", "DM", ")", ",", "is", "n't", "it", "Ann", "'s", "?", "”", "Yes", "."]
    assert [word.form for word in found.words] == forms
    assert [sentence.text for sentence in found.sentences] == ["He said: “data mining (DM), isn't it Ann's?”", "Yes."]
    assert [sentence.paragraph for sentence in found.sentences] == [0, 1]
    kept = plain(Document("x", (Sentence(document("x", "a (b").words),), keyphrases=("b",)))
    assert (kept.id, kept.keyphrases, len(kept.words)) == ("x", ("b",), 3)


def plain_probabilities(finder: Finder, words: Document, start: int, end: int) -> np.ndarray:
    """The probabilities of the words of one window, by the formula."""
    encoder = Encoder(finder.model.tokenizer, "document", finder.length, "error", decoder_start=finder.model.decoder_start)
    (text,) = encoder.texts([Document("x", (Sentence(words.words[start:end]),))], Tally())
    x = read_words(finder.model, [text]).received.reshape(end - start, -1).astype(np.float64)
    logits = ((x - finder.scale.mean) / finder.scale.spread) @ finder.fit.coefficients + finder.fit.intercept
    return np.array([1 / (1 + math.exp(-value)) for value in logits])


def test_weights_of_a_text_that_fits_equal_the_formula(finder: Finder) -> None:
    given = plain("The cat saw the dog.")
    found = finder.find("The cat saw the dog.")
    assert_allclose(found.weights, plain_probabilities(finder, given, 0, len(given.words)), rtol=1e-3, atol=1e-4)
    assert found.notes == ()
    assert found.cut == pytest.approx(1 / (1 + math.exp(-finder.cut)))


def test_a_word_of_a_long_text_is_weighted_in_the_window_where_it_is_most_central(finder: Finder) -> None:
    given = plain(LONG)
    found = finder.find(LONG)
    words = given.words
    word_of = finder.model.tokenizer.tokens(words)[1]
    sizes = [word_of.count(place) for place in range(len(words))]
    room = finder.length - finder.model.tokenizer.single.size
    for spare in (0, 1, 3):  # GPT-2 needs more tokens for some words at the beginning of a window
        parts = windows(sizes, room - spare)
        try:
            values = [plain_probabilities(finder, given, start, end) for start, end in parts]
            break
        except EncodingError:
            continue
    assert len(parts) > 2
    assert found.notes == (
        f"the text was read in {len(parts)} windows of up to {finder.length} tokens that overlap by half;"
        " each word is weighted in the window in which it is furthest from an edge",
    )
    for place in range(len(words)):
        margins = []
        for (start, end), own in zip(parts, values, strict=True):
            if start <= place < end:
                margin = min(place - start if start else math.inf, end - 1 - place if end < len(words) else math.inf)
                margins.append((margin, own[place - start]))
        best = max(margin for margin, _ in margins)
        assert found.weights[place] == pytest.approx(next(value for margin, value in margins if margin == best), rel=1e-3, abs=1e-4)


def test_a_trained_finder_weights_keywords_above_other_words(finder: Finder) -> None:
    trained = finder.trained
    assert (trained.corpus, trained.texts) == ("pets", 20)
    assert f"20 documents (pets); F1 of words of keyphrases is {trained.f1:.2f} on held-out documents (each in turn" in trained.sentence
    assert trained.f1 > 0.7  # the same texts occur in all folds
    found = finder.find("The cats saw the dog.")
    keys = {"cats", "dog"}
    by_key = [
        np.mean([w for word, w in zip(found.document.words, found.weights, strict=True) if (word.form in keys) == key])
        for key in (True, False)
    ]
    assert by_key[0] > by_key[1]


def test_a_finder_opened_from_a_study_equals_one_trained_on_the_same_texts(bert_or_gpt2: Model, finder: Finder, tmp_path: Path) -> None:
    """Its weights equal those of a finder trained on the same texts, and its scores are those of the study's tables."""
    settings = {"replicates": 20, "folds": 3, "model": bert_or_gpt2.name, "corpus": "some/pets.jsonl"}
    results = execute("keywords", settings, tmp_path / "kw", model=bert_or_gpt2, corpus=corpus())
    opened = Finder.open(tmp_path / "kw", bert_or_gpt2)
    assert_allclose(opened.find(LONG).weights, finder.find(LONG).weights, atol=1e-4)
    row = next(iter(results["keywords_scores"].where(system="all heads", level="words")))
    assert opened.trained.f1 == row["f1"] == pytest.approx(finder.trained.f1)
    assert (
        f"{row['f1']:.2f} [{row['low']:.2f}, {row['high']:.2f}] on held-out documents (each in turn, in 3 folds)" in opened.trained.sentence
    )
    assert (opened.trained.texts, opened.trained.corpus) == (20, "pets.jsonl")
    dev = Corpus.of(replace(one, id=f"dev{one.id}") for one in corpus(2))
    tried = execute("keywords", {"replicates": 0, "dev": "dev.jsonl"}, tmp_path / "dev", model=bert_or_gpt2, corpus=corpus(), dev=dev)
    assert "(10 of dev.jsonl)" in Finder.of(tried, bert_or_gpt2).trained.sentence
    other = loaded(tmp_path / "other", "gpt2" if "bert" in type(bert_or_gpt2.network).__name__.lower() else "bert")
    with pytest.raises(RunError, match=r"was learnt from the heads of .*Use --model"):
        Finder.open(tmp_path / "kw", other)
    with pytest.raises(ModelError, match="the finder was trained with"):
        hs.keywords("A cat.", other, finder)


def test_texts_without_words_are_refused_and_words_that_do_not_fit_are_skipped(finder: Finder) -> None:
    with pytest.raises(RunError, match="there is no word in text"):
        finder.find(" \n ")
    endless = "-".join(["cat"] * 400)
    with pytest.raises(HeadscopeError, match="longer than the"):
        finder.find(endless)
    found = finder.find(f"The cat {endless} saw the dog.")
    assert found.weights[2] == 0
    assert_allclose(np.delete(found.weights, 2), finder.find("The cat saw the dog.").weights, atol=1e-4)
    assert any("skipped" in note for note in found.notes)


def test_other_scripts_and_emoji_are_read_but_lone_surrogates_are_refused(finder: Finder) -> None:
    with pytest.raises(HeadscopeError, match="lone surrogates"):
        finder.find("cat\ud800 dog")
    for text in ("猫は座った。", "😀 \u200d\u202e cat\x00", "Ünï—cödé", "..."):
        found = finder.find(text)
        assert np.isfinite(found.weights).all()
        KeywordView([found], finder).page()


def test_the_page_escapes_texts_and_marks_phrases_and_figures_are_saved(finder: Finder, tmp_path: Path) -> None:
    text = 'The cat <script>alert("cats")</script> & the dog.\n\nA $dog$ sat_on "mats".'
    finder = replace(finder, cut=-50.0)  # every word is above the threshold
    found = hs.keywords(text, learned=finder, top=3)
    assert [(word, weight >= 0) for word, weight in found.words][:2] == [("The", True), ("cat", True)]
    assert found.table["phrase"] == [phrase.text for phrase in found.phrases] == found.table["phrase"][:3]
    page = found.save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;" in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    assert finder.trained.sentence in page
    assert page.count("<u") == page.count("</u>") == sum(len(phrase.places) for phrase in found.phrases) > 0
    assert page.count("<tr><td>") == len(found.phrases)
    for rank in range(1, len(found.phrases) + 1):
        assert page.count(f'id="t1p{rank}"') == page.count(f'href="#t1p{rank}"') == 1
    frame = found._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert " sandbox " in frame
    for suffix in ("svg", "png", "pdf"):
        assert found.save(tmp_path / f"figure.{suffix}").stat().st_size > 1000
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "&lt;" in drawn
    assert "alert" in drawn
    assert found.trained in repr(found)
    several = hs.keywords([text, "A dog."], learned=finder)
    assert "<h2>text 2</h2>" in several.page()
    with pytest.raises(RunError, match="a picture can show one text, not 2"):
        several.save(tmp_path / "figure.svg")
    with pytest.raises(RunError, match="room for 1,500 words"):
        hs.keywords("cat " * 1501, learned=finder).plot()
    with pytest.raises(RunError, match="cannot be written"):
        found.save(tmp_path / "figure.docx")
    with pytest.raises(RunError, match="top is 0"):
        hs.keywords(text, learned=finder, top=0)
    with pytest.raises(RunError, match="no text"):
        hs.keywords([], learned=finder)


@pytest.mark.parametrize("family", ["bart", "roberta"])
def test_every_word_has_a_weight_in_other_families_of_models(tmp_path: Path, family: str) -> None:
    """Encoder–decoders, and tokenizers that encode the first word of a text differently: no word is lost in windows."""
    found = learn(loaded(tmp_path, family), corpus(2), "pets", folds=2).find(LONG)
    assert "windows" in found.notes[0]
    assert ((found.weights > 0) & (found.weights < 1)).all()
