"""Tokens that look like rare names, recognised by spelling and frequency, without annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import IS_WORD, WORD, Side

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


def is_capitalised(form: str) -> bool:
    """Whether a token is a capital letter followed by letters."""
    return len(form) > 1 and form.isalpha() and form[0].isupper()


def capitalised_names(side: Side) -> Bool[np.ndarray, "batch position"]:
    """True at capitalised words whose form in lower case does not occur in the same text. That of *The* mostly does."""
    words = side.chosen("word", IS_WORD)
    kinds = tuple(side.kinds)  # another thread may add more meanwhile
    lower = {form: number for number, form in enumerate(dict.fromkeys(form.lower() for form, _ in kinds))}
    spelling = np.array([*(lower[form.lower()] for form, _ in kinds), 0])
    capital = np.array([*(role == WORD and is_capitalised(form) for form, role in kinds), False])[side.positions]
    text = np.arange(len(words))[:, None] * (len(lower) + 1)
    spelled = text + spelling[side.positions]
    plain = np.array([*(role == WORD and form == form.lower() for form, role in kinds), False])[side.positions]
    names: Bool[np.ndarray, "batch position"] = capital & ~np.isin(spelled, spelled[plain])
    return names


def seldom(tokens: Int[np.ndarray, "batch position"], most: int) -> Bool[np.ndarray, "batch position"]:
    """True at tokens that occur at most `most` times in their text."""
    width = int(tokens.max(initial=0)) + 2
    keys = np.arange(len(tokens))[:, None] * width + tokens + 1
    rare: Bool[np.ndarray, "batch position"] = np.bincount(keys.ravel(), minlength=len(tokens) * width)[keys] <= most
    return rare
