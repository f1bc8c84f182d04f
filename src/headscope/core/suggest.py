"""Suggestions for a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The most similar known name as a question: `Did you mean nsubj? `; empty if none is similar."""
    by_lower = {str(each).lower(): str(each) for each in reversed([*known])}
    wanted = name.lower()
    like = get_close_matches(wanted, by_lower, n=1, cutoff=0.6)
    if not like and len(wanted) > 1:
        like = sorted((each for each in by_lower if each.startswith(wanted)), key=len)[:1]
    return f"Did you mean {by_lower[like[0]]}? " if like else ""


def choose_head(name: object, heads: Iterable[object]) -> str:
    """The remedy for a head that a model does not have: a similar head if there is one, the first and the last."""
    names = [str(head) for head in heads]
    return f"{did_you_mean(str(name), names)}Its heads are {names[0]} to {names[-1]}"


def choose_from(name: object, known: Iterable[object], lead: str = "Use one of") -> str:
    """The remedy for an unknown name: a similar name if there is one, and the list of all known names."""
    names = [str(each) for each in known]
    return f"{did_you_mean(str(name), names)}{lead} {', '.join(names)}"
