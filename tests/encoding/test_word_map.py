"""Word maps from token maps, compared with loops, and the groups of tokens that are words."""

from __future__ import annotations

from typing import get_args
from zlib import crc32

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headscope.core.annotation import Annotation
from headscope.core.batch import CLS, SEP, SPECIAL, WORD, Side
from headscope.core.document import Word
from headscope.encoding.batches import token_side
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded
from headscope.encoding.words import WordGroups, group, word_map

CPU = torch.device("cpu")
ROWS: tuple[Rows, ...] = get_args(Rows)
Array = NDArray[np.float64]


def encoded(*groups: str | list[str], name: str = "d/1") -> Encoded:
    """A text made of groups: a list of pieces is a word, a string is a special token."""
    pieces: list[str] = []
    roles: list[int] = []
    word_of: list[int] = []
    forms: list[Word] = []
    for entry in groups:
        own = [entry] if isinstance(entry, str) else entry
        pieces += own
        roles += [{"[CLS]": CLS, "[SEP]": SEP}.get(entry, SPECIAL)] if isinstance(entry, str) else [WORD] * len(own)
        word_of += [-1] if isinstance(entry, str) else [len(forms)] * len(own)
        if not isinstance(entry, str):
            forms.append(Word("".join(own).replace("##", "")))
    ids = np.array([crc32(piece.encode()) % 2**20 for piece in pieces], dtype=np.int64)
    return Encoded(name, Annotation.of_sentence("d", tuple(forms)), ids, np.zeros_like(ids), tuple(roles), tuple(word_of), tuple(pieces))


def random_text(rng: np.random.Generator, words: int, name: str) -> Encoded:
    made: list[str | list[str]] = ["[CLS]"]
    for number in range(words):
        made.append([f"w{number}", *(f"##{piece}" for piece in range(rng.integers(0, 4)))])
        if rng.random() < 0.2:
            made.append("[SEP]")
    return encoded(*made, "[SEP]", name=name)


def random_maps(rng: np.random.Generator, heads: int, rows: int, columns: int) -> Array:
    weights = rng.gamma(0.3, size=(heads, rows, columns)) + 1e-6
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def members(text: Encoded) -> list[list[int]]:
    """The tokens of each group, determined from `word_of` only."""
    found: list[list[int]] = []
    for token, word in enumerate(text.word_of):
        if word >= 0 and token and text.word_of[token - 1] == word:
            found[-1].append(token)
        else:
            found.append([token])
    return found


def naive(weights: Array, queries: list[list[int]], keys: list[list[int]], rows: str) -> Array:
    """The word map, computed one cell at a time."""
    heads = weights.shape[0]
    result = np.zeros((heads, len(queries), len(keys)))
    for head in range(heads):
        for i, sources in enumerate(queries):
            for j, targets in enumerate(keys):
                sums = [sum(weights[head, source, target] for target in targets) for source in sources]
                result[head, i, j] = {"mean": sum(sums) / len(sums), "first": sums[0], "max": max(sums)}[rows]
            if rows == "max":
                result[head, i] /= sum(result[head, i])
    return result


PLAY = encoded("[CLS]", ["play", "##ing"], ["now"], "[SEP]")
PLAY_MAP = [
    [0.2, 0.1, 0.3, 0.2, 0.2],
    [0.1, 0.4, 0.2, 0.2, 0.1],
    [0.3, 0.1, 0.1, 0.4, 0.1],
    [0.25, 0.25, 0.25, 0.15, 0.1],
    [0.5, 0.1, 0.1, 0.1, 0.2],
]
SINGLE_ROWS = {0: [0.2, 0.4, 0.2, 0.2], 2: [0.25, 0.5, 0.15, 0.1], 3: [0.5, 0.2, 0.1, 0.2]}


@pytest.mark.parametrize(
    ("rows", "second"),
    [
        ("mean", [0.2, 0.4, 0.3, 0.1]),
        ("first", [0.1, 0.6, 0.2, 0.1]),
        ("max", [0.2142857, 0.4285714, 0.2857143, 0.0714286]),  # .3 .6 .4 .1 divided by 1.4
    ],
)
def test_a_word_map_equals_values_worked_by_hand(rows: Rows, second: list[float]) -> None:
    groups = WordGroups.build([PLAY], CPU)
    found = word_map(torch.tensor([[PLAY_MAP]]), groups, groups, rows)
    expected = [SINGLE_ROWS[0], second, SINGLE_ROWS[2], SINGLE_ROWS[3]]
    assert found.shape == (1, 1, 4, 4)
    np.testing.assert_allclose(found[0, 0].numpy(), expected, atol=1e-7)


def test_mean_is_the_default() -> None:
    groups = WordGroups.build([PLAY], CPU)
    maps = torch.tensor([[PLAY_MAP]])
    assert torch.equal(word_map(maps, groups, groups), word_map(maps, groups, groups, "mean"))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("seed", range(4))
def test_word_maps_equal_the_plain_loop_with_any_padding(rows: Rows, seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts = [random_text(rng, words, f"d/{words}") for words in (1, 9, 4, 6)]
    width = max(map(len, texts))
    own = [random_maps(rng, 3, len(text), len(text)) for text in texts]
    # Padded columns have weight 0. Padded rows have any values, as in the output of models.
    batch = rng.random((len(texts), 3, width, width))
    for row, maps in enumerate(own):
        batch[row, :, :, len(texts[row]) :] = 0
        batch[row, :, : len(texts[row]), : len(texts[row])] = maps
    groups = WordGroups.build(texts, CPU)
    found = word_map(torch.tensor(batch, dtype=torch.float32), groups, groups, rows)
    assert found.shape == (4, 3, groups.side.width, groups.side.width)
    for row, (text, maps) in enumerate(zip(texts, own, strict=True)):
        expected = naive(maps, members(text), members(text), rows)
        size = expected.shape[-1]
        assert int(groups.side.lengths[row]) == size
        np.testing.assert_allclose(found[row, :, :size, :size].numpy(), expected, atol=2e-6)
        np.testing.assert_allclose(found[row, :, :size, :size].sum(-1).numpy(), 1, atol=1e-5)
        # Rows and columns beyond the words of the text are 0.
        assert not found[row, :, :size, size:].any()
        assert not found[row, :, size:].any()
        alone = WordGroups.build([text], CPU)
        unpadded = word_map(torch.tensor(maps[None], dtype=torch.float32), alone, alone, rows)
        np.testing.assert_allclose(unpadded[0].numpy(), found[row, :, :size, :size].numpy(), atol=1e-6)


@pytest.mark.parametrize("rows", ROWS)
def test_word_maps_of_cross_attention_equal_the_plain_loop(rows: Rows) -> None:
    rng = np.random.default_rng(5)
    targets = [random_text(rng, words, f"t/{words}") for words in (2, 5)]
    sources = [random_text(rng, words, f"s/{words}") for words in (7, 3)]
    own = [random_maps(rng, 2, len(target), len(source)) for target, source in zip(targets, sources, strict=True)]
    batch = np.zeros((2, 2, max(map(len, targets)), max(map(len, sources))))
    for row, maps in enumerate(own):
        batch[row, :, : maps.shape[1], : maps.shape[2]] = maps
    queries, keys = WordGroups.build(targets, CPU), WordGroups.build(sources, CPU)
    found = word_map(torch.tensor(batch, dtype=torch.float32), queries, keys, rows)
    assert found.shape == (2, 2, queries.side.width, keys.side.width)
    for row, maps in enumerate(own):
        expected = naive(maps, members(targets[row]), members(sources[row]), rows)
        np.testing.assert_allclose(found[row, :, : expected.shape[1], : expected.shape[2]].numpy(), expected, atol=2e-6)


def test_the_word_map_of_words_of_one_token_equals_the_token_map() -> None:
    text = encoded("[CLS]", ["a"], ["b"], "[SEP]")
    groups = WordGroups.build([text], CPU)
    maps = torch.tensor(random_maps(np.random.default_rng(0), 2, 4, 4)[None], dtype=torch.float32)
    for rows in ROWS:
        assert torch.allclose(word_map(maps, groups, groups, rows), maps, atol=1e-6)


def spelt(side: Side) -> list[list[tuple[str, int]]]:
    return [[side.kinds[number] for number in row if number >= 0] for row in side.positions]


def test_word_groups_and_their_side_equal_values_worked_by_hand() -> None:
    short = encoded("[CLS]", ["a"], "[SEP]")
    groups = WordGroups.build([PLAY, short], CPU)
    assert groups.of.tolist() == [[0, 1, 1, 2, 3], [0, 1, 2, -1, -1]]
    first = [("[CLS]", CLS), ("playing", WORD), ("now", WORD), ("[SEP]", SEP)]
    assert spelt(groups.side) == [first, [("[CLS]", CLS), ("a", WORD), ("[SEP]", SEP)]]
    assert groups.side.lengths.tolist() == [4, 3]
    assert groups.member.dtype == torch.float32
    assert groups.member[1].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_the_token_side_equals_values_worked_by_hand() -> None:
    side = token_side([PLAY, encoded("[CLS]", ["a"], "[SEP]")])
    first = [("[CLS]", CLS), ("play", WORD), ("##ing", WORD), ("now", WORD), ("[SEP]", SEP)]
    assert spelt(side) == [first, [("[CLS]", CLS), ("a", WORD), ("[SEP]", SEP)]]
    assert side.chosen("a or now", lambda form, role: form in ("a", "now")).tolist() == [[0, 0, 0, 1, 0], [0, 1, 0, 0, 0]]
    assert side.lengths.tolist() == [5, 3]
    assert side.width == 5


def test_adjacent_equal_words_are_separate_groups() -> None:
    text = encoded(["very"], ["very"], ["ve", "##ry"], "[SEP]")
    groups, forms, roles = group(text.word_of, text.roles, [word.form for word in text.words], text.pieces)
    assert groups == [0, 1, 2, 2, 3]
    assert forms == ["very", "very", "very", "[SEP]"]
    assert roles == [WORD, WORD, WORD, SEP]


def test_each_special_token_is_a_separate_group() -> None:
    text = encoded("[CLS]", "<en>", ["a", "##b"], "[SEP]", "[SEP]", ["c"], "[SEP]")
    groups, forms, roles = group(text.word_of, text.roles, [word.form for word in text.words], text.pieces)
    assert groups == [0, 1, 2, 2, 3, 4, 5, 6]
    assert forms == ["[CLS]", "<en>", "ab", "[SEP]", "[SEP]", "c", "[SEP]"]
    assert roles == [CLS, SPECIAL, WORD, SEP, SEP, WORD, SEP]


def test_a_special_token_within_a_word_splits_it() -> None:
    groups, forms, roles = group([0, -1, 0], [WORD, SEP, WORD], ["ab"], ["a", "[SEP]", "##b"])
    assert (groups, forms, roles) == ([0, 1, 2], ["ab", "[SEP]", "ab"], [WORD, SEP, WORD])


def test_a_special_token_written_as_a_word_is_a_word() -> None:
    groups, forms, roles = group([0, -1], [WORD, SEP], ["[SEP]"], ["[SEP]", "[SEP]"])
    assert (groups, forms, roles) == ([0, 1], ["[SEP]", "[SEP]"], [WORD, SEP])
