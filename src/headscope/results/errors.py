"""What is made of a run folder that does not hold together: one error that names it, wherever it is noticed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from headscope.errors import HeadscopeError, RunError
from headscope.results.results import Results

P = ParamSpec("P")
T = TypeVar("T")


def of_runs(function: Callable[P, T]) -> Callable[P, T]:
    """A function of results that blames their folders for what it cannot make sense of.

    A run.json or a table that was changed by hand is noticed when something in it is used, anywhere and as any kind
    of error. Results that never were in a folder are not to blame.
    """

    @wraps(function)
    def blaming(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except HeadscopeError:
            raise
        except Exception as error:
            listed = (one for given in (*args, *kwargs.values()) for one in (given if isinstance(given, list | tuple) else [given]))
            given = [one for one in listed if isinstance(one, Results)]
            folders = " or ".join(dict.fromkeys(str(one.path) for one in given if one.path is not None))
            if not folders:
                raise
            said = (str(error).strip() or "no message").splitlines()[0][:200]
            raise RunError(
                f"what is in {folders} makes no sense ({type(error).__name__}: {said})",
                "Run again with --overwrite; if nothing was changed in the folder by hand, headscope itself is at fault",
            ) from error

    return blaming
