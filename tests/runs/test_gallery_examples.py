"""Examples of a gallery from planted attention: each head is shown with its planted behaviour."""

from __future__ import annotations

import numpy as np
import pytest

import headscope as hs
from headscope.core.document import Word
from headscope.results.gallery import Example
from helpers.galleries import Map, gallery_of

VERBS = ["sees", "hears", "finds", "takes", "eats", "holds"]


def planted(turn: int, right: bool) -> tuple[Map, list[str], list[Word]]:
    """The maps, tokens and words of a sentence of 9 tokens. The four heads attend to the previous token, to [SEP], to
    all tokens evenly, and from the object to its governor if `right`, else to the subject.
    """
    words = [
        Word("the", head=2, relation="det", upos="DET"),
        Word("dog", head=3, relation="nsubj", upos="NOUN"),
        Word(VERBS[turn % 6], head=0, relation="root", upos="VERB"),
        Word("two", head=6, relation="nummod", upos="NUM"),
        Word("old", head=6, relation="amod", upos="ADJ"),
        Word("cats", head=3, relation="obj", upos="NOUN"),
        Word(".", head=3, relation="punct", upos="PUNCT"),
    ]
    n = 9
    before = np.eye(n, k=-1)
    before[0, 0] = 1
    to_sep = np.zeros((n, n))
    to_sep[:, -1] = 1
    objects = np.eye(n)
    objects[6] = np.eye(n)[3 if right else 2]
    maps = np.stack([before, to_sep, np.full((n, n), 1 / n), objects])
    return maps[None], ["[CLS]", *(word.form for word in words), "[SEP]"], words


def test_examples_of_each_head_show_its_planted_behaviour() -> None:
    made = [planted(turn, right=turn in (4, 17)) for turn in range(24)]
    run = hs.measure(
        [maps for maps, *_ in made],
        [tokens for _, tokens, _ in made],
        {"positions": {}, "tokens": {}, "relations": {"least": 1, "offsets": (-1,)}},
        words=[[None, *range(7), None]] * 24,
        annotation=[words for *_, words in made],
        documents=[f"d{turn}" for turn in range(24)],
    )
    gallery = gallery_of(run)
    assert [str(head) for head in gallery.stacks[0][1]] == ["1-1", "1-2", "1-3", "1-4"]
    shown: dict[tuple[str, str], list[Example]] = {}
    for example in gallery.examples:
        shown.setdefault((str(example.head), example.measure), []).append(example)
    for head, measure, quantity, value in (("1-1", "positions", "previous", 8 / 9), ("1-2", "tokens", "to_sep", 1.0)):
        assert [example.quantity for example in shown[head, measure]] == [quantity] * 2
        assert [example.value for example in shown[head, measure]] == pytest.approx([value] * 2)
    objects = shown["1-4", "relations"]
    assert [(example.quantity, example.value, example.n) for example in objects] == [("obj", 1.0, 1)] * 2
    assert {gallery.texts[example.text]["id"] for example in objects} == {"text 5", "text 18"}
    assert all(example.map[6, 3] == 65535 for example in objects)
    # A head with even attention is not above the baseline of any position or token.
    assert not [key for key in shown if key[0] == "1-3" and key[1] != "relations"]
    points = gallery.points
    assert points is not None
    assert points.behaviour[1] == "[SEP]"


def test_examples_of_relations_are_ranked_by_the_rule_of_succession() -> None:
    """By the rule of succession, one of one scores 2/3, as does three of four; four of four scores 5/6."""

    def text(objects: int, right: int) -> tuple[Map, list[str], list[Word]]:
        words = [Word("v", head=0, relation="root"), *(Word("o", head=1, relation="obj") for _ in range(objects))]
        map = np.eye(objects + 1, k=1) + np.eye(objects + 1)
        map[-1] = np.eye(objects + 1)[0] if right == objects else np.eye(objects + 1)[-1]
        for row in range(1, right + 1):
            map[row] = np.eye(objects + 1)[0]
        return (map / map.sum(1, keepdims=True))[None, None], [word.form for word in words], words

    made = [text(1, 1), text(4, 4), text(4, 1), text(9, 6)]
    run = hs.measure(
        [maps for maps, *_ in made],
        [tokens for _, tokens, _ in made],
        {"relations": {"least": 1, "offsets": (3,)}},
        words=[list(range(len(tokens))) for _, tokens, _ in made],
        annotation=[words for *_, words in made],
    )
    gallery = gallery_of(run)
    assert [(gallery.texts[example.text]["id"], example.value, example.n) for example in gallery.examples] == [
        ("text 2", 1.0, 4),
        ("text 1", 1.0, 1),
    ]


def test_examples_of_tokens_are_ranked_by_weight_above_even_attention() -> None:
    """Weight on [SEP] minus even attention: 0.9 - 1/8 = 0.775 in 8 tokens, 0.88 - 1/20 = 0.83 in 20, and 0.92 - 1/4 =
    0.67 in 4. Texts of fewer than 8 or more than 25 tokens count 0.9 of it: in 60 tokens, 0.9 * (0.87 - 1/60) = 0.768.
    """

    def text(tokens: int, share: float) -> tuple[Map, list[str]]:
        map = np.full((tokens, tokens), (1 - share) / (tokens - 1))
        map[:, -1] = share
        return map[None, None], ["a"] * (tokens - 1) + ["[SEP]"]

    made = [text(8, 0.9), text(20, 0.88), text(4, 0.92), text(60, 0.87)]
    run = hs.measure([map for map, _ in made], [tokens for _, tokens in made], ["tokens"], replicates=0)
    gallery = gallery_of(run)
    assert [gallery.texts[example.text]["id"] for example in gallery.examples] == ["text 2", "text 1"]
    assert [example.value for example in gallery.examples] == pytest.approx([0.88, 0.9])
