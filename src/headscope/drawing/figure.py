"""A figure with a look and a caption; the caption is written into every file."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from headscope.drawing.look import look
from headscope.drawing.theme import theme


@dataclass(frozen=True)
class Caption:
    """The caption of a figure: what it shows, its sample size, and the signature."""

    n: str = ""
    signature: str = ""
    about: str = ""

    @property
    def text(self) -> str:
        """The caption as text, as written into a file beside the figure."""
        said = [f"{self.about[:1].upper()}{self.about[1:]}." if self.about else "", f"n = {self.n}." if self.n else ""]
        return _printable("\n".join(filter(None, [*said, self.signature])))

    def metadata(self, kind: str) -> dict[str, Any]:
        """The caption as metadata of a file, without a date, so that equal figures give equal bytes."""
        title, said, source = (_printable(part) for part in (self.about, f"n = {self.n}" if self.n else "", self.signature))
        if kind == "pdf":
            return {"CreationDate": None, "Title": title, "Subject": said, "Keywords": source}
        named = {"Title": title, "Description": said, "Source": source}
        return {**({"Date": None} if kind == "svg" else {}), **{name: value for name, value in named.items() if value}}


class Drawing(Figure):
    """A matplotlib figure with a caption. It is saved in the style in which it was drawn, not in matplotlib's current
    one.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.look = look()
        self.caption = Caption()

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """Write the figure, with its caption as metadata."""
        kind = str(kwargs.get("format") or Path(str(fname)).suffix.removeprefix(".")).lower()
        if kind in ("svg", "pdf", "png"):
            kwargs.setdefault("metadata", self.caption.metadata(kind))
        with theme(self.look):
            super().savefig(fname, **kwargs)

    def _repr_svg_(self) -> str:
        """The figure as SVG for a notebook, which keeps it for readers without a kernel."""
        from headscope.drawing.theme import render

        return render(self, "svg").decode()


def _printable(text: str) -> str:
    """A text without characters that files cannot hold: control characters and lone surrogates."""
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(sign) in ("Cc", "Cs") and sign != "\n" else sign for sign in text)
