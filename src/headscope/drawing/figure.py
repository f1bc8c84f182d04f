"""A figure that knows what it looks like and what to say of it: its caption goes into every file."""

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
    """What is said of a figure: what it shows, how many texts it rests on, and what could change it."""

    n: str = ""
    signature: str = ""
    about: str = ""

    @property
    def text(self) -> str:
        """All of it, as written into a file beside the figure."""
        said = [f"{self.about[:1].upper()}{self.about[1:]}." if self.about else "", f"n = {self.n}." if self.n else ""]
        return _printable("\n".join(filter(None, [*said, self.signature])))

    def metadata(self, kind: str) -> dict[str, Any]:
        """The same as metadata of a file, without a date, so that the same figure gives the same bytes."""
        title, said, source = (_printable(part) for part in (self.about, f"n = {self.n}" if self.n else "", self.signature))
        if kind == "pdf":
            return {"CreationDate": None, "Title": title, "Subject": said, "Keywords": source}
        named = {"Title": title, "Description": said, "Source": source}
        return {**({"Date": None} if kind == "svg" else {}), **{name: value for name, value in named.items() if value}}


class Drawing(Figure):
    """A matplotlib figure with a caption. It is saved in the style in which it was drawn, whatever matplotlib's is."""

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
        """The figure as a notebook shows it, and keeps it for readers without a kernel."""
        from headscope.drawing.theme import render

        return render(self, "svg").decode()


def _printable(text: str) -> str:
    """A text without what files cannot hold: control characters and halves of characters."""
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(sign) in ("Cc", "Cs") and sign != "\n" else sign for sign in text)
