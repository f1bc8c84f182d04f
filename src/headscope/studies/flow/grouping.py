"""Flow between words from flow between tokens: means over pieces, unlike the word maps of attention, which are sums
over keys.

A norm is not a share, so norms are not added: a word of three pieces does not have three times the influence. Special
tokens belong to no word. All matrices are [layer, source, target]: entry (i, j) is the influence of token i on token
j.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.suggest import choose_from
from headscope.errors import MeasureError
from headscope.studies.flow.spec import GROUPINGS, Grouping

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64

Matrices = Mapping[str, "Float[np.ndarray, 'layer source target']"]


def to_words(
    matrix: Float[np.ndarray, "layer token token"], word_of: Sequence[int], words: int, how: Grouping = "mean"
) -> Float64[np.ndarray, "layer word word"]:
    """Flow between words: the mean over the pieces of the source, then over those of the target; or the sums.

    `word_of` is the word of each token, -1 for none. A word without a token has NaN.
    """
    if how not in GROUPINGS:
        raise MeasureError(f"unknown grouping of pieces {how!r}", choose_from(how, GROUPINGS))
    share = _share(matrix, word_of, words, how)
    of_words: Float64[np.ndarray, "layer word word"] = share @ np.asarray(matrix, dtype=np.float64) @ share.T
    return of_words


def contributions(matrix: Float[np.ndarray, "layer token token"]) -> Float64[np.ndarray, "layer token"]:
    """The influence of each token on all tokens together, including itself and special tokens."""
    sums: Float64[np.ndarray, "layer token"] = np.asarray(matrix, dtype=np.float64).sum(-1)
    return sums


def group_means(
    values: Float64[np.ndarray, "layer token"], group_of: Sequence[int] | Int64[np.ndarray, "token"], groups: int
) -> Float64[np.ndarray, "layer group"]:
    """The mean over the tokens of each group, such as a word or a class of words; NaN for a group without tokens."""
    of = np.asarray(group_of, dtype=np.int64)
    member = (of[:, None] == np.arange(groups)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        means: Float64[np.ndarray, "layer group"] = (values @ member) / member.sum(0)
    return means


def checked(matrices: Matrices, tokens: int) -> int:
    """The number of layers; an error for matrices that do not fit the text or each other."""
    shapes = {name: np.shape(matrix) for name, matrix in matrices.items()}
    if not shapes:
        raise MeasureError("no matrix was given", "Give at least one, as in {'A': attention}")
    for name, shape in shapes.items():
        if len(shape) != 3 or shape[1:] != (tokens, tokens):
            raise MeasureError(
                f"matrix {name} has the shape {shape} for a text of {tokens} tokens", "Use the shape [layer, source token, target token]"
            )
    layers = {int(shape[0]) for shape in shapes.values()}
    if len(layers) > 1:
        raise MeasureError(
            f"matrices have different numbers of layers: {' and '.join(map(str, sorted(layers)))}", "Give the same layers of each measure"
        )
    return layers.pop()


def _share(
    matrix: Float[np.ndarray, "layer token token"], word_of: Sequence[int], words: int, how: Grouping
) -> Float64[np.ndarray, "word token"]:
    of = np.asarray(word_of, dtype=np.int64)
    if matrix.shape[1:] != (len(of), len(of)):
        raise MeasureError(f"a matrix of shape {matrix.shape} does not fit {len(of)} tokens", "Use the shape [layer, token, token]")
    member = (of[None, :] == np.arange(words)[:, None]).astype(np.float64)
    sizes = member.sum(1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Float64[np.ndarray, "word token"] = np.where(sizes > 0, member / (sizes if how == "mean" else 1), np.nan)
    return share
