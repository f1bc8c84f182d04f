"""One text through one model: to look at in a notebook, to save as a page or a picture."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.batch import WORD
from headscope.core.heads import HeadId
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.runs.grids import Grid, Level, Specials, check, grid
from headscope.runs.heads import find_heads
from headscope.runs.store import write_atomically
from headscope.runs.texts import look, quantised, typed
from headscope.views.text import WHY, Looked, look_at, signature, text_data, text_page, title_of, with_choice
from headscope.widget.files import PICTURES, suffix_of
from headscope.widget.shown import Shown

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float
    from matplotlib.figure import Figure

BESIDE = 1_000_000  # bytes of maps that a notebook keeps beside a live view
FIRST = 3  # heads of a picture or a list if none are named


class View(Shown):
    """What a model's heads look at in one text. In a notebook it draws itself; `save` writes a page or a picture.

    `level` and `specials` are what is shown at first, and what pictures show: `word` and `show` if nothing is said.
    """

    def __init__(
        self,
        model: Model,
        text: str,
        second: str | None = None,
        heads: Sequence[str | HeadId] | None = None,
        level: Level | None = None,
        specials: Specials | None = None,
        max_length: int | None = None,
    ) -> None:
        check(level or "word", specials or "show")
        self.model = model
        self.level, self.specials = level, specials
        self._named = find_heads(model, heads) if heads is not None else None
        if self._named == []:
            raise RunError("no head is named", "Write, say, 8-10,5-4, or leave heads out")
        self._typed = typed(model, text, second, max_length)
        self.text = self._typed.encoded
        self.height = min(360 + 18 * self.text.cost, 900)

    @property
    def signature(self) -> str:
        """The line that says which model read which text."""
        return signature(self.model, self.text)

    @cached_property
    def note(self) -> str:
        """What was left out of the text, in words; "" if nothing was."""
        note = self._typed.note
        return f"{note}; {self.model.name} reads the first {len(self.text):,} tokens" if "cut off" in note else note

    @cached_property
    def _looked(self) -> Looked:
        return look_at(self.model, self.text, self._named)

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """The heads that were named, or those of the model's first kind of attention that link far words most clearly first."""
        return self._looked.order

    def map(self, head: str | HeadId) -> Float[np.ndarray, "query key"]:
        """A head's weights between tokens."""
        (found,) = find_heads(self.model, [head])
        kept = self._looked.maps
        return kept[found] if found in kept else look(self.model, self.text, [found])[found]

    def grid(self, head: str | HeadId) -> Grid:
        """A head's map at the view's level, with the words of its rows and columns."""
        (found,) = find_heads(self.model, [head])
        return grid(self.text, found, self.map(found), self.level or "word", self.specials or "show")

    def grids(self) -> dict[HeadId, Grid]:
        """The maps of the heads that were named, or of the first three, at the view's level."""
        return {head: self.grid(head) for head in (self._named or self.heads[:FIRST])}

    def figure(self) -> Figure:
        """The heads that were named, or the first three, as a figure in the manner of Clark et al.'s Figures 1 and 5."""
        from headscope.figures import lines

        read = [side for side in (self.text, self.text.target) if side is not None]
        n = [sum(role == WORD for role in side.roles) if self.level == "token" else len(side.words) for side in read]
        return lines.draw(self.grids(), f"{' and '.join(map(str, n))} {self.level or 'word'}s", self.signature)

    def save(self, path: str | Path) -> Path:
        """Write the view as a page (.html) that works offline, or its figure (.svg, .pdf, .png), and return where it is."""
        target = Path(path)
        if suffix_of(target) == "html":
            write_atomically(target, self.page().encode())
        else:
            from headscope.figures import save

            save(self.figure(), target)
        return target

    def notes(self, path: str | Path | None = None) -> list[str]:
        """What a reader should know of the text, and of the file if the view is saved as `path`; nothing if all is there."""
        found = [self.note]
        suffix = suffix_of(Path(path)) if path is not None else ""
        if suffix == "html":
            found.append(self._looked.note)
        if suffix in PICTURES and suffix != "svg":
            from headscope.figures.lines import lacking

            if letters := lacking(word for shown in self.grids().values() for word in (*shown.rows, *shown.columns)):
                found.append(
                    f"the figure's font has no {' '.join(letters[:10])}: boxes stand for them; an .svg shows them in the reader's font"
                )
        return [note for note in found if note]

    def page(self) -> str:
        """One HTML page, with the maps of all heads if they fit."""
        return text_page(self._payload(self._looked.maps), title_of(self.model, self.text), "; ".join(self.notes("page.html")))

    def frame_page(self) -> str:
        """The same with the maps of all heads only where they are small, and else of those shown first."""
        if sum(weights.size * 2 for weights in self._looked.maps.values()) <= BESIDE:
            return self.page()
        first = self._first()
        note = f"{len(first)} of {self.model.layout.size} heads are kept without a kernel"
        maps = {head: self.map(head) for head in first}
        return text_page(self._payload(maps), title_of(self.model, self.text), "; ".join([*self.notes(), note]))

    def data(self) -> dict[str, Any]:
        """What the live view draws at first: the text and the maps of the heads shown; it asks for the others when they are chosen."""
        return {"text": self._payload({head: self.map(head) for head in self._first()})}

    def bytes_of(self, head: str) -> bytes:
        """A head's map as the live view reads it."""
        return quantised(self.map(head)).tobytes()

    def _first(self) -> tuple[HeadId, ...]:
        return tuple(self._named or self.heads[:1])

    def _payload(self, maps: Any) -> dict[str, Any]:
        data = with_choice(text_data(self.model, self._typed, self._first(), maps), self.level, self.specials)
        return data if self._named else {**data, "why": WHY}

    def __repr__(self) -> str:
        lines = [f"View({self.signature})"]
        for head in self._first()[:FIRST]:
            shown = self.grid(head)
            pairs = sorted(((weight, word, to) for n, word in enumerate(shown.rows) for to, weight in shown.strongest(n, 1)), reverse=True)[
                :4
            ]
            lines.append(f"  head {head}: " + ", ".join(f"{word} → {to} {weight:.2f}" for weight, word, to in pairs))
        return "\n".join([*lines, '  In a notebook this is drawn; .save("page.html") or .save("figure.svg") writes it'])
