"""A run in a notebook: every head, a card of the chosen one, and the run's figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headscope.core.heads import find_head
from headscope.core.suggest import choose_head
from headscope.errors import RunError
from headscope.results.folder import write_atomically
from headscope.results.results import Results
from headscope.views.page import shell
from headscope.views.run import run_data
from headscope.widget.shown import Shown


class RunView(Shown):
    """The heads of a run, a card of the chosen head, and figures. A notebook draws the view; `save` writes a page."""

    height = 900

    def __init__(self, results: Results, head: str | None = None) -> None:
        self._run = run_data(results)
        self._head = _known(head, results) if head is not None else None

    @property
    def head(self) -> str | None:
        """The chosen head; in a live view the one that was chosen last."""
        return self.widget.head if "widget" in self.__dict__ else self._head

    def data(self) -> dict[str, Any]:
        """The run, and the head that is initially chosen."""
        return {"run": self._run, "head": self._head}

    def page(self) -> str:
        """One HTML page with all numbers that works offline."""
        return shell(f"headscope: {self._run['name']}", '<main><div data-view="run"></div></main>', self.data())

    def save(self, path: str | Path) -> Path:
        """Write the view as a page (.html), and return its path."""
        target = Path(path)
        if target.suffix.lower() != ".html":
            raise RunError(f"the view of a run cannot be written as {target.name!r}", "Use a name that ends in .html")
        write_atomically(target, self.page().encode())
        return target

    def __repr__(self) -> str:
        return f"RunView({self._run['signature']})\n" + '  In a notebook this is drawn; .save("page.html") writes it'


def _known(name: str, results: Results) -> str:
    """The run's name for a head, or an error; a name without a kind is of the first kind of attention."""
    heads = results.layout.ids()
    try:
        asked = find_head(name, heads)
    except ValueError as error:
        raise RunError(str(error)) from None
    if asked is None:
        raise RunError(f"the run has no head {name}", choose_head(name, heads))
    return str(asked)
