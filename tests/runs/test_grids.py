"""Grids of the maps of one text, against a second, plain computation, and the order in which heads are shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.heads import HeadId
from headscope.engine.typed_text import typed
from headscope.errors import RunError
from headscope.gallery.grids import LEVELS, SPECIALS, Grid, Level, Specials, grid, sides
from headscope.gallery.heads import far, find_heads, rank
from headscope.gallery.texts import look
from headscope.models.model import Model
from helpers.architectures import build
from helpers.families import FAMILIES

MODELS = [("bert", "wordpiece"), ("gpt2", "gpt2"), ("llama", "llama-3"), ("t5", "t5")]


def saved(folder: Path, name: str, tokenizer: str) -> Path:
    tokens = FAMILIES[tokenizer]()
    build(name, vocabulary=len(tokens)).save_pretrained(folder / name)
    tokens.save_pretrained(folder / name)
    return folder / name


def grouped_map(weights: np.ndarray, rows: list[list[int]], columns: list[list[int]]) -> np.ndarray:
    """The map between groups of tokens: the sum over the tokens attended to, the mean over the attending tokens."""
    return np.array([[np.mean([sum(weights[i, j] for j in column) for i in row]) for column in columns] for row in rows])


def token_groups(word_of: tuple[int, ...]) -> list[list[int]]:
    """The tokens of each word; a token outside words is a group alone."""
    found: list[list[int]] = []
    for place, word in enumerate(word_of):
        if place and word >= 0 and word == word_of[place - 1]:
            found[-1].append(place)
        else:
            found.append([place])
    return found


@pytest.mark.parametrize(("name", "tokenizer"), MODELS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("specials", SPECIALS)
def test_grids_of_every_level_and_choice_of_specials_equal_a_plain_computation(
    tmp_path: Path, name: str, tokenizer: str, level: Level, specials: Specials
) -> None:
    model = hs.load(saved(tmp_path, name, tokenizer))
    encoded = typed(model, "The cats sat playing, dogs!", "A dog.", 40).encoded
    maps = look(model, encoded)
    for head in {head.kind: head for head in maps}.values():
        rows, columns = sides(encoded, head.kind)
        assert maps[head].shape == (len(rows), len(columns))
        groups = [token_groups(side.word_of) if level == "word" else [[n] for n in range(len(side))] for side in (rows, columns)]
        expected = grouped_map(maps[head], *groups)
        kept = [
            [n for n, group in enumerate(found) if side.roles[group[0]] == 0 or specials == "show"]
            for side, found in zip((rows, columns), groups, strict=True)
        ]
        expected = expected[np.ix_(*kept)]
        if specials == "renormalise":
            totals = expected.sum(1, keepdims=True)
            expected = np.where(totals > 0, expected / np.where(totals > 0, totals, 1), 0)
        shown = grid(encoded, head, maps[head], level, specials)
        assert_allclose(shown.weights, expected, atol=1e-6)
        assert (len(shown.rows), len(shown.columns)) == shown.weights.shape
        if level == "word" and specials != "show":
            assert list(shown.columns) == [word.form for word in columns.words]


def test_the_strongest_links_of_a_row_are_sorted_by_weight() -> None:
    shown = Grid(np.array([[0.2, 0.5, 0.2, 0.1]]), ("a",), ("w", "x", "y", "z"))
    assert shown.strongest(0, 3) == [("x", 0.5), ("w", 0.2), ("y", 0.2)]
    assert shown.strongest(0, 4, 0.15) == [("x", 0.5), ("w", 0.2), ("y", 0.2)]


def test_heads_are_ranked_by_their_links_between_distant_words(mini: Model) -> None:
    """The rule computed a second time: per word, the largest weight on a word more than two places away. Words have a
    letter or digit.
    """
    encoded = typed(mini, "The keys to the old cabinets, which my sister bought, are gone.").encoded
    maps = look(mini, encoded)
    groups = token_groups(encoded.word_of)
    words = [encoded.word_of[group[0]] >= 0 and encoded.words[encoded.word_of[group[0]]].form.isalnum() for group in groups]
    scores = {}
    for head, weights in maps.items():
        between = grouped_map(weights, groups, groups)
        scores[head] = sum(
            max((between[i, j] for j in range(len(groups)) if words[j] and abs(i - j) > 2), default=0)
            for i in range(len(groups))
            if words[i]
        )
    order = rank(mini, encoded, maps)
    assert order == rank(mini, encoded), "the order is the same without maps"
    assert [round(scores[head], 4) for head in order[:20]] == sorted((round(score, 4) for score in scores.values()), reverse=True)[:20]
    assert len(order) == len(maps)


def test_a_first_word_without_an_opening_token_is_not_a_distant_word(mini: Model, mini_decoder: Model, tmp_path: Path) -> None:
    """In the shortest texts, neighbours count as distant words."""
    assert not far(typed(mini, "!").encoded, "encoder").any()
    two = far(typed(mini, "black cats").encoded, "encoder")
    assert two.any(), "in the shortest texts, neighbours are linked, since there are no other words"
    decoder = hs.load(saved(tmp_path, "gpt2", "gpt2"))
    mask = far(typed(decoder, "The cat sat on a mat", None, 40).encoded, "decoder")
    assert not mask[:, 0].any(), "a first word without an opening token before it"
    assert far(typed(mini_decoder, "The cat sat on a mat", None, 40).encoded, "decoder")[:, 1].any()


def test_heads_are_found_by_name_and_unknown_names_are_refused(mini: Model, mini_decoder: Model, tmp_path: Path) -> None:
    assert find_heads(mini, ["8-10", HeadId("encoder", 0, 0), "8-10"]) == [HeadId("encoder", 7, 9), HeadId("encoder", 0, 0)]
    (head,) = find_heads(mini_decoder, ["4-3", "decoder/4-3"])
    assert (head, str(head)) == (HeadId("decoder", 3, 2), "4-3")
    for name, says in [
        ("13-1", "no head 13-1"),
        ("cross/1-1", "no cross attention"),
        ("x", "is not the name of a head"),
        ("0-1", "is not the name of a head"),
    ]:
        with pytest.raises(RunError, match=says):
            find_heads(mini, [name])
    with pytest.raises(RunError, match="Its heads are cross/1-1 to cross/2-4"):
        find_heads(hs.load(saved(tmp_path, "t5", "t5")), ["cross/3-1"])
