"""Errors about run folders that are damaged or were edited: one error that names the folder, wherever it is noticed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from headscope.errors import HeadscopeError, RunError
from headscope.results.results import Results

P = ParamSpec("P")
T = TypeVar("T")


def blame_folder(function: Callable[P, T]) -> Callable[P, T]:
    """Turn an error raised while results are read into a RunError that names their folders.

    A run.json or a table that was edited is noticed when something in it is used, anywhere and as any kind of error.
    Errors about results that never were in a folder stay as they are.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except HeadscopeError:
            raise
        except Exception as error:
            listed = (value for given in (*args, *kwargs.values()) for value in (given if isinstance(given, list | tuple) else [given]))
            paths = (value.path for value in listed if isinstance(value, Results))
            folders = " or ".join(dict.fromkeys(str(path) for path in paths if path is not None))
            if not folders:
                raise
            said = (str(error).strip() or "no message").splitlines()[0][:200]
            raise RunError(
                f"{folders} is damaged or was edited ({type(error).__name__}: {said})",
                "Run again with --overwrite; if nothing was changed in the folder by hand, headscope itself is at fault",
            ) from error

    return call
