"""The base of all views in a notebook: a live widget, a page in a frame, and saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import RunError
from headscope.results.folder import write_atomically
from headscope.views.page import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.widget.live import LiveView

PICTURES = ("svg", "pdf", "png")


class Shown(ABC):
    """A view that a notebook draws if it is the last line of a cell."""

    height = 600  # pixels of the frame

    @abstractmethod
    def page(self) -> str:
        """The view as one HTML page that needs nothing else."""

    def frame_page(self) -> str:
        """The page that a notebook keeps beside a live view, for readers without a kernel; it may contain less."""
        return self.page()

    @abstractmethod
    def data(self) -> Mapping[str, Any]:
        """The data that the live view draws first."""

    def bytes_of(self, head: str) -> bytes:
        """The map of a head that the live view requests: uint16, row by row."""
        raise RunError(f"the map of head {head} is not in this view")

    def influence_of(self, measure: str) -> dict[str, Any]:
        """A measure of influence between the tokens of a text that the live view requests."""
        raise RunError(f"influence by {measure} needs one text, and this view has none")

    @cached_property
    def widget(self) -> LiveView:
        """The live widget, to combine with others; it needs anywidget."""
        if not live():
            raise RunError("anywidget is not installed", "Install it with: pip install 'headscope[notebook]'")
        from headscope.widget.live import LiveView

        return LiveView(plain(self.data()), self.bytes_of, self.influence_of)

    def _repr_html_(self, lazy: bool = False) -> str:
        """The page in a sandboxed frame, which can run scripts and save files but cannot reach the notebook; a `lazy`
        frame is loaded when it becomes visible.
        """
        page = self.frame_page() if live() else self.page()
        when = ' loading="lazy"' if lazy else ""
        return (
            f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" title="headscope"{when}'
            f' style="width:100%;height:{self.height}px;border:0;resize:vertical;overflow:auto"></iframe>'
        )

    def _live(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The live widget's output and its metadata, in which Colab finds the code of widgets."""
        shown = self.widget._repr_mimebundle_()
        data, metadata = shown if isinstance(shown, tuple) else (shown, {})
        return {kind: value for kind, value in (data or {}).items() if kind != "text/plain"}, metadata

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget for a notebook with a kernel, the page for readers without a kernel, and a line for a terminal."""
        static = {"text/plain": repr(self), "text/html": self._repr_html_()}
        if not live():
            return static, {}
        data, metadata = self._live()
        return {**data, **static}, metadata

    def _ipython_display_(self) -> None:
        """Show the page, and then the live widget, which hides the page when it is drawn.

        They are two outputs, because nbconvert writes only the widget of an output that has one: offline, where no
        widget can be loaded, the page would be blank.
        """
        display: Any = import_module("IPython.display").display

        if not (live() and _has_kernel()):
            display({"text/plain": repr(self), "text/html": self._repr_html_()}, raw=True)
            return
        data, metadata = self._live()
        self.widget.fallback = name = f"headscope-{self.widget.model_id}"
        page = f'<div data-fallback="{name}">{self._repr_html_(lazy=True)}</div>'
        display({"text/plain": repr(self), "text/html": page}, raw=True)
        display({**data, "text/plain": ""}, metadata=metadata, raw=True)


def _has_kernel() -> bool:
    """Whether output is displayed by a notebook, not by a terminal."""
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def live() -> bool:
    """Whether a live widget can be made."""
    return find_spec("anywidget") is not None


def suffix_of(path: Path) -> str:
    """The kind of file from the end of a name; an error if a view cannot be saved as it."""
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in ("html", *PICTURES):
        raise RunError(f"a view cannot be written as {path.name!r}", f"Use a name that ends in .html, .{', .'.join(PICTURES)}")
    return suffix


def save_view(path: str | Path, page: Callable[[], str], figure: Callable[..., Figure], options: Mapping[str, Any]) -> Path:
    """Write the page (.html) or the figure (.svg, .pdf, .png) of a view, and return its path; `options` are those of
    all figures.
    """
    target = Path(path)
    if suffix_of(target) == "html":
        if options:
            raise RunError(f"{next(iter(options))} is only for figures", "Use a name that ends in .svg, .pdf or .png, or omit the option")
        write_atomically(target, page().encode())
    else:
        from headscope.drawing.theme import save

        save(figure(**options), target)
    return target
