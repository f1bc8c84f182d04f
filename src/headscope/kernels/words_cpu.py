"""Attention between words from attention between tokens, and each word's favourite (most attended word): compiled loops
on a CPU.

A word is a few consecutive tokens, and a sentence a few words: looping over them is much faster than the matrix
products and masks of the plain implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.kernels.compiling import compiled, in_threads

if TYPE_CHECKING:
    from jaxtyping import Float32, Int32, Int64

    Bounds = Int64[np.ndarray, "side text word"]  # the first token of each word, and the first one after it


def word_map(
    weights: Float32[np.ndarray, "text head query key"], rows: Bounds, columns: Bounds
) -> Float32[np.ndarray, "text head word word"]:
    """Sums over the tokens of each word attended to, and the mean over those of each attending word."""
    texts, heads = weights.shape[:2]
    out = np.zeros((texts, heads, rows.shape[2], columns.shape[2]), np.float32)
    in_threads(_word_map, texts * heads, weights, rows, columns, out)
    return out


@compiled
def _word_map(
    weights: Float32[np.ndarray, "text head query key"],
    rows: Bounds,
    columns: Bounds,
    out: Float32[np.ndarray, "text head word word"],
    begin: int,
    end: int,
) -> None:
    heads = weights.shape[1]
    for number in range(begin, end):
        text, head = number // heads, number % heads
        for row in range(rows.shape[2]):
            start, stop = rows[0, text, row], rows[1, text, row]
            for query in range(start, stop):
                line = weights[text, head, query]
                for column in range(columns.shape[2]):
                    total = np.float32(0)
                    for key in range(columns[0, text, column], columns[1, text, column]):
                        total += line[key]
                    out[text, head, row, column] += total
            if stop - start > 1:
                for column in range(columns.shape[2]):
                    out[text, head, row, column] /= np.float32(stop - start)


def favourites(
    weights: Float32[np.ndarray, "text head word word"], sentence: Int64[np.ndarray, "text word"], bounds: Bounds
) -> Int64[np.ndarray, "direction text head word"]:
    """The word that each attends to most, and the one that attends to it most, among the others of its sentence; -1 if
    none does.

    `sentence` is -1 for what is no word; `bounds` say from where to where a word's sentence reaches. Of equal
    weights the first wins.
    """
    texts, heads, words = weights.shape[:3]
    chosen = np.full((2, texts, heads, words), -1, np.int64)
    in_threads(_favourites, texts * heads, weights, sentence, bounds, chosen)
    return chosen


@compiled
def _favourites(
    weights: Float32[np.ndarray, "text head word word"],
    sentence: Int64[np.ndarray, "text word"],
    bounds: Bounds,
    chosen: Int64[np.ndarray, "direction text head word"],
    begin: int,
    end: int,
) -> None:
    heads, words = weights.shape[1:3]
    for number in range(begin, end):
        text, head = number // heads, number % heads
        most = np.zeros(words, np.float32)  # of each column
        for row in range(words):
            if sentence[text, row] < 0:
                continue
            best = np.float32(0)
            for column in range(bounds[0, text, row], bounds[1, text, row]):
                if column != row and sentence[text, column] == sentence[text, row]:
                    weight = weights[text, head, row, column]
                    if weight > best:
                        best = weight
                        chosen[0, text, head, row] = column
                    if weight > most[column]:
                        most[column] = weight
                        chosen[1, text, head, column] = row


def favourites_of_tokens(
    weights: Float32[np.ndarray, "text head query key"],
    origins: Int64[np.ndarray, "text query"],
    rows: Bounds,
    columns: Bounds,
    sentence: Int64[np.ndarray, "text word"],
    bounds: Bounds,
) -> Int64[np.ndarray, "direction text head word"]:
    """The favourites in the word map of these maps between tokens. Only the part of the word map within each sentence
    is computed, one row at a time. `origins` are the keys of the first weight of each row.
    """
    texts, heads = weights.shape[:2]
    chosen = np.full((2, texts, heads, sentence.shape[1]), -1, np.int64)
    in_threads(_favourites_of_tokens, texts * heads, weights, origins, rows, columns, sentence, bounds, chosen)
    return chosen


@compiled
def _favourites_of_tokens(
    weights: Float32[np.ndarray, "text head query key"],
    origins: Int64[np.ndarray, "text query"],
    rows: Bounds,
    columns: Bounds,
    sentence: Int64[np.ndarray, "text word"],
    bounds: Bounds,
    chosen: Int64[np.ndarray, "direction text head word"],
    begin: int,
    end: int,
) -> None:
    texts, heads, tokens, _ = weights.shape
    words = sentence.shape[1]
    word_of = np.zeros((texts, tokens), np.int32)
    for text in range(texts):
        for column in range(words):
            for key in range(columns[0, text, column], columns[1, text, column]):
                word_of[text, key] = column
    for number in range(begin, end):
        text, head = number // heads, number % heads
        line = np.zeros(words, np.float32)  # a row of the word map, and the contribution of one of its tokens
        part = np.zeros(words, np.float32)
        most = np.zeros(words, np.float32)  # of each column, and where
        where = np.full(words, -1, np.int32)
        for row in range(words):
            if sentence[text, row] < 0:
                continue
            low, after = bounds[0, text, row], bounds[1, text, row]
            start, stop = rows[0, text, row], rows[1, text, row]
            line[low:after] = np.float32(0)
            for query in range(start, stop):
                part[low:after] = np.float32(0)
                first = columns[0, text, low]
                span = weights[text, head, query, first - origins[text, query] : columns[1, text, after - 1] - origins[text, query]]
                for at in range(len(span)):
                    part[word_of[text, first + at]] += span[at]
                for column in range(low, after):
                    line[column] += part[column]
            if stop - start > 1:
                for column in range(low, after):
                    line[column] /= np.float32(stop - start)
            for column in range(low, after):  # only other words of the sentence can be chosen
                if sentence[text, column] != sentence[text, row]:
                    line[column] = np.float32(0)
            line[row] = np.float32(0)
            best = np.float32(0)
            for column in range(low, after):
                best = max(best, line[column])
                better = line[column] > most[column]
                most[column] = line[column] if better else most[column]
                where[column] = np.int32(row) if better else where[column]
            if best > 0:
                for column in range(low, after):
                    if line[column] == best:
                        chosen[0, text, head, row] = column
                        break
        for column in range(words):
            chosen[1, text, head, column] = where[column]


def count_right(
    chosen: Int64[np.ndarray, "direction text head word"],
    text: Int64[np.ndarray, "case"],
    word: Int64[np.ndarray, "case"],
    answer: Int64[np.ndarray, "case"],
    cell: Int64[np.ndarray, "case"],
    cells: int,
) -> Int32[np.ndarray, "cell direction head"]:
    """How often each head chooses the answer, by cell. A case asks what is chosen for a word of a text."""
    directions, heads = chosen.shape[0], chosen.shape[2]
    counts = np.zeros((heads, directions, cells), np.int32)
    in_threads(_count_right, heads * directions, chosen, text, word, answer, cell, counts)
    return counts.transpose(2, 1, 0)


@compiled
def _count_right(
    chosen: Int64[np.ndarray, "direction text head word"],
    text: Int64[np.ndarray, "case"],
    word: Int64[np.ndarray, "case"],
    answer: Int64[np.ndarray, "case"],
    cell: Int64[np.ndarray, "case"],
    counts: Int32[np.ndarray, "head direction cell"],
    begin: int,
    end: int,
) -> None:
    directions = counts.shape[1]
    for number in range(begin, end):
        head, direction = number // directions, number % directions
        for case in range(len(cell)):
            counts[head, direction, cell[case]] += chosen[direction, text[case], head, word[case]] == answer[case]
