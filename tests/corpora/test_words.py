"""Words of plain text in any script."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpora.words import word_spans


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat sat.", "The|cat|sat|."),
        ("It's a so-called dog, don't you think?", "It's|a|so-called|dog|,|don't|you|think|?"),
        ("A.B.C. cost 1,000, or 1.5", "A.B.C|.|cost|1,000|,|or|1.5"),
        ("(naïve) café—x", "(|naïve|)|café|—|x"),
        ("cafe\u0301 e\u0301", "cafe\u0301|e\u0301"),
        ("हिन्दी में", "हिन्दी|में"),
        ("שלום, עולם", "שלום|,|עולם"),
        ("猫が座った。OK", "猫|が|座|っ|た|。|OK"),
        ("👩\u200d👩\u200d👧 👍🏽!", "👩\u200d👩\u200d👧|👍🏽|!"),
        ("<script>", "<|script|>"),
        (" \t\n", ""),
        ("-a- '", "-|a|-|'"),
    ],
)
def test_a_text_is_split_into_words(text: str, words: str) -> None:
    assert "|".join(text[start:end] for start, end in word_spans(text)) == words


@given(st.text())
def test_every_character_except_white_space_is_in_one_word(text: str) -> None:
    spans = word_spans(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert {at for start, end in spans for at in range(start, end)} >= {at for at, character in enumerate(text) if not character.isspace()}
