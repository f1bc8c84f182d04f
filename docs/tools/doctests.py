"""For the API pages: examples in docstrings, from `>>>` to the next empty line, become blocks of code, and names of
pages links.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_PAGE = re.compile(r"docs/([\w-]+)\.md")


def mended(text: str) -> str:
    """A docstring with its examples between fences and with links, as seen from docs/api/."""
    return _PAGE.sub(r"[\1](../\1.md)", _EXAMPLE.sub(lambda found: f"```pycon\n{found.group()}\n```", text))


class Doctests(griffe.Extension):
    """What mkdocstrings calls for every object that it reads."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Mend the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = mended(obj.docstring.value)
