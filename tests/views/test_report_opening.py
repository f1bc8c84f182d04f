"""The first screen of a report: the order and the wording of its findings, and the sentence that illustrates them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.heads import HeadId
from headscope.gallery.texts import quantised
from headscope.report import body
from headscope.report.headlines import Headline, headlines
from headscope.report.opening import opening
from headscope.report.pictures import themed
from headscope.report.plain import percents, relation, rule
from headscope.report.sentence_pictures import between_words, marked_pairs, sentence_picture
from headscope.results.gallery import Example, Gallery
from headscope.views.tokens import tokens
from helpers.planted_maps import TOKENS, planted


def test_headlines_are_ordered_by_effect() -> None:
    results = hs.measure([planted(), planted()], [TOKENS, TOKENS], ["positions", "tokens"], documents=["x", "y"]).results
    first, second = headlines(results)
    assert (first.head, first.quantity, second.head, second.quantity) == ("1-2", "to_sep", "1-1", "previous")
    assert first.title.replace("\N{NO-BREAK SPACE}", " ").startswith("Head 1-2 gives 100 % of its attention to [SEP]")
    assert_allclose(first.effect, 0.8)
    parts = opening(results, None)
    assert parts is not None
    assert parts["first"]["sentence"] is None
    assert parts["first"]["grid"][0]["cells"] == [False, True]


def test_a_run_without_headlines_has_no_opening() -> None:
    results = hs.measure(np.full((1, 2, 3, 3), 1 / 3), ["a", "b", "c"], ["positions"]).results
    assert headlines(results) == []
    assert opening(results, None) is None
    assert 'class="opening"' not in body(results)


def test_relations_rules_and_intervals_are_written_in_plain_words() -> None:
    assert relation("obj") == ("direct objects", "verb")
    assert relation("dep:odd") == ("words with the relation dep:odd", "governor")
    assert (rule("-2"), rule("+1"), rule("nearest"), rule("own rule")) == (
        "the second word before",
        "the word after",
        "the nearest mention",
        "own rule",
    )
    assert percents(float("nan"), float("nan")) == ""
    assert percents(0.781, 0.849).endswith("interval 78 to 85")


SIDE = {
    "tokens": ["[CLS]", "keep", "##s", "cat", "[SEP]"],
    "roles": [1, 0, 0, 0, 2],
    "words": [-1, 0, 0, 1, -1],
    "forms": ["keeps", "cat"],
    "relations": [[1, 0, "obj:direct"]],
}
MAP = np.array([[1, 0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4, 0], [0, 0, 0.2, 0.6, 0.2], [0.1, 0.5, 0.2, 0.1, 0.1], [0, 0, 0, 0, 1.0]])


def test_attention_between_words_is_summed_over_keys_and_averaged_over_queries() -> None:
    weights, special = between_words(MAP, SIDE)
    assert_allclose(weights, [[0.35, 0.5], [0.7, 0.1]])
    assert_allclose(special, [0.15, 0.1])


@pytest.mark.parametrize(("quantity", "pair"), [("obj", (1, 0)), ("obj (head-to-dep)", (0, 1))])
def test_the_links_of_a_relation_and_its_subtypes_are_marked(quantity: str, pair: tuple[int, int]) -> None:
    assert marked_pairs(SIDE, "relations", quantity) == {pair}
    assert marked_pairs(SIDE, "tokens", quantity) == frozenset()


def test_the_text_with_the_clearest_link_is_chosen() -> None:
    """In the chosen text, the verb receives more attention than the object itself and the special tokens."""
    unclear = MAP.copy()
    unclear[3] = [0.6, 0.2, 0.1, 0.05, 0.05]
    head = HeadId("encoder", 0, 0)
    examples = tuple(Example(head, "relations", "obj", 1.0, 1, number, quantised(map)) for number, map in enumerate((unclear, MAP)))
    texts = ({"id": "unclear", "source": SIDE}, {"id": "clear", "source": SIDE})
    gallery = Gallery(texts, (), examples, None, None)
    headline = Headline("1-1", "relations", "obj", "", "", 0.8, 0.7, 0.9, 0.3, "", "", ("1-1",))
    picture = sentence_picture(gallery, headline)
    assert picture is not None
    assert picture["text"] == "clear"
    assert [(i, j, marked) for i, j, _, marked in picture["links"]] == [(0, 1, False), (1, 0, True)]
    assert sentence_picture(None, headline) is None


def test_a_static_figure_has_colours_for_dark_mode_and_is_unchanged_in_light_mode() -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><path style="fill: #0072b2"/></svg>'
    drawn = themed(svg).decode()
    sheet = drawn[drawn.index("<style>") : drawn.index("</style>") + len("</style>")]
    assert sheet.startswith("<style>@media(prefers-color-scheme:dark){")
    assert f'[style*="fill: #0072b2"]{{fill:{tokens("dark")["--hs-s1"]}!important}}' in sheet
    assert drawn.replace(sheet, "").encode() == svg
