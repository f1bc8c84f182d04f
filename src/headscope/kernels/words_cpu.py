"""Attention between words from attention between tokens, and each word's favourite (most attended word): compiled loops
on a CPU.

A word is a few consecutive tokens, and a sentence a few words: looping over them is much faster than the matrix
products and masks of the plain implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import prange

from headscope.kernels.compiling import compiled, using

if TYPE_CHECKING:
    from jaxtyping import Float32, Int32, Int64

    Bounds = Int64[np.ndarray, "side text word"]  # the first token of each word, and the first one after it


def word_map(
    weights: Float32[np.ndarray, "text head query key"], rows: Bounds, columns: Bounds, threads: int
) -> Float32[np.ndarray, "text head word word"]:
    """Sums over the tokens of each word attended to, and the mean over those of each attending word."""
    with using(threads):
        found: Float32[np.ndarray, "text head word word"] = _word_map(weights, rows, columns)
    return found


@compiled
def _word_map(
    weights: Float32[np.ndarray, "text head query key"], rows: Bounds, columns: Bounds
) -> Float32[np.ndarray, "text head word word"]:
    texts, heads = weights.shape[:2]
    out = np.zeros((texts, heads, rows.shape[2], columns.shape[2]), np.float32)
    for number in prange(texts * heads):
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
    return out


def favourites(
    weights: Float32[np.ndarray, "text head word word"],
    sentence: Int64[np.ndarray, "text word"],
    bounds: Bounds,
    threads: int,
) -> Int64[np.ndarray, "direction text head word"]:
    """The word that each attends to most, and the one that attends to it most, among the others of its sentence; -1 if
    none does.

    `sentence` is -1 for what is no word; `bounds` say from where to where a word's sentence reaches. Of equal
    weights the first wins.
    """
    with using(threads):
        found: Int64[np.ndarray, "direction text head word"] = _favourites(weights, sentence, bounds)
    return found


@compiled
def _favourites(
    weights: Float32[np.ndarray, "text head word word"], sentence: Int64[np.ndarray, "text word"], bounds: Bounds
) -> Int64[np.ndarray, "direction text head word"]:
    texts, heads, words = weights.shape[:3]
    chosen = np.full((2, texts, heads, words), -1, np.int64)
    for number in prange(texts * heads):
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
    return chosen


def favourites_of_tokens(
    weights: Float32[np.ndarray, "text head query key"],
    rows: Bounds,
    columns: Bounds,
    sentence: Int64[np.ndarray, "text word"],
    bounds: Bounds,
    threads: int,
) -> Int64[np.ndarray, "direction text head word"]:
    """The favourites in the word map of these maps between tokens. Only the part of the word map within each sentence
    is computed, one row at a time.
    """
    with using(threads):
        found: Int64[np.ndarray, "direction text head word"] = _favourites_of_tokens(weights, rows, columns, sentence, bounds)
    return found


@compiled
def _favourites_of_tokens(
    weights: Float32[np.ndarray, "text head query key"],
    rows: Bounds,
    columns: Bounds,
    sentence: Int64[np.ndarray, "text word"],
    bounds: Bounds,
) -> Int64[np.ndarray, "direction text head word"]:
    texts, heads, _, keys = weights.shape
    words = sentence.shape[1]
    word_of = np.zeros((texts, keys), np.int32)
    for text in range(texts):
        for column in range(words):
            for key in range(columns[0, text, column], columns[1, text, column]):
                word_of[text, key] = column
    chosen = np.full((2, texts, heads, words), -1, np.int64)
    for number in prange(texts * heads):
        text, head = number // heads, number % heads
        line = np.zeros(words, np.float32)  # a row of the word map, and the contribution of one of its tokens
        part = np.zeros(words, np.float32)
        most = np.zeros(words, np.float32)  # of each column, and where
        where = np.full(words, -1, np.int32)
        for row in range(words):
            if sentence[text, row] < 0:
                continue
            first, after = bounds[0, text, row], bounds[1, text, row]
            start, stop = rows[0, text, row], rows[1, text, row]
            line[first:after] = np.float32(0)
            for query in range(start, stop):
                part[first:after] = np.float32(0)
                for key in range(columns[0, text, first], columns[1, text, after - 1]):
                    part[word_of[text, key]] += weights[text, head, query, key]
                for column in range(first, after):
                    line[column] += part[column]
            if stop - start > 1:
                for column in range(first, after):
                    line[column] /= np.float32(stop - start)
            for column in range(first, after):  # only other words of the sentence can be chosen
                if sentence[text, column] != sentence[text, row]:
                    line[column] = np.float32(0)
            line[row] = np.float32(0)
            best = np.float32(0)
            for column in range(first, after):
                best = max(best, line[column])
                better = line[column] > most[column]
                most[column] = line[column] if better else most[column]
                where[column] = np.int32(row) if better else where[column]
            if best > 0:
                for column in range(first, after):
                    if line[column] == best:
                        chosen[0, text, head, row] = column
                        break
        for column in range(words):
            chosen[1, text, head, column] = where[column]
    return chosen


def count_right(
    chosen: Int64[np.ndarray, "direction text head word"],
    text: Int64[np.ndarray, "case"],
    word: Int64[np.ndarray, "case"],
    answer: Int64[np.ndarray, "case"],
    cell: Int64[np.ndarray, "case"],
    cells: int,
    threads: int,
) -> Int32[np.ndarray, "cell direction head"]:
    """How often each head chooses the answer, by cell. A case asks what is chosen for a word of a text."""
    with using(threads):
        counts: Int32[np.ndarray, "head direction cell"] = _count_right(chosen, text, word, answer, cell, cells)
    return counts.transpose(2, 1, 0)


@compiled
def _count_right(
    chosen: Int64[np.ndarray, "direction text head word"],
    text: Int64[np.ndarray, "case"],
    word: Int64[np.ndarray, "case"],
    answer: Int64[np.ndarray, "case"],
    cell: Int64[np.ndarray, "case"],
    cells: int,
) -> Int32[np.ndarray, "head direction cell"]:
    directions, heads = chosen.shape[0], chosen.shape[2]
    counts = np.zeros((heads, directions, cells), np.int32)
    for number in prange(heads * directions):
        head, direction = number // directions, number % directions
        for case in range(len(cell)):
            counts[head, direction, cell[case]] += chosen[direction, text[case], head, word[case]] == answer[case]
    return counts
