"""Exceptions for the user: each says what is wrong, where, and what to do about it."""

from __future__ import annotations

from pathlib import Path

_LONGEST = 1500  # characters of a problem: it may quote a text as long as a file


class HeadscopeError(Exception):
    """Base of every error a user can cause; the command line prints it without a traceback and exits with 2."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        problem = problem if len(problem) <= _LONGEST else f"{problem[: _LONGEST // 2]} … {problem[-_LONGEST // 2 :]}"
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}. {remedy}" if remedy else problem)


class CorpusError(HeadscopeError):
    """A corpus file that cannot be read."""

    def __init__(self, path: str | Path, line: int | None, problem: str, remedy: str = "", unit: str = "line") -> None:
        self.path = str(path)
        self.line = line
        where = f"{unit} {line} of {path}" if line is not None else str(path)
        super().__init__(f"{where}: {problem}", remedy)


class ModelError(HeadscopeError):
    """A model that cannot be loaded, or whose attention cannot be read."""


class NoPredictionsError(ModelError):
    """A checkpoint that lacks the head or the weights to make predictions."""


class EncodingError(HeadscopeError):
    """Words that a tokenizer cannot align with its tokens."""


class MeasureError(HeadscopeError):
    """A measure that does not exist, an option it does not take, or input it cannot use."""


class RunError(HeadscopeError):
    """A run folder or a specification that is invalid or inconsistent."""


class HeadscopeWarning(UserWarning):
    """Results that need a check before they are used: the model cannot read the texts, or a measure counted nothing."""


class StaleError(RunError):
    """A run folder whose run was replaced after the folder was opened."""
