"""The keywords of a text, to view in a notebook or to save as a page or a picture."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.drawing.look import find_look, using
from headscope.errors import RunError
from headscope.results.signature import versions
from headscope.results.table import Table
from headscope.studies.keywords.finder import Finder, KeywordResult
from headscope.studies.keywords.phrases import Phrase
from headscope.widget.shown import save_view

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOP = 15


class KeywordView:
    """The keywords of texts. In a notebook the text is shaded by weight; `save` writes a page or a picture.

    `finder` finds phrases in other texts without training again: `hs.keywords(other, learned=found.finder)`.
    """

    def __init__(self, texts: Sequence[KeywordResult], finder: Finder, top: int = TOP) -> None:
        if not texts:
            raise RunError("there is no text", "Give at least one")
        if top < 1:
            raise RunError(f"top is {top}", "Use 1 phrase or more")
        self.texts, self.finder, self.top = tuple(texts), finder, top

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """The best phrases of the first text, each with its score and its places among the words."""
        return self.texts[0].phrases[: self.top]

    @property
    def words(self) -> list[tuple[str, float]]:
        """The words of the first text, each with the probability that it is part of a keyphrase."""
        text = self.texts[0]
        return [(word.form, float(weight)) for word, weight in zip(text.document.words, text.weights, strict=True)]

    @property
    def table(self) -> Table:
        """One row per phrase, the best first, of all texts one after the other."""
        rows = [(text.document.id, rank, phrase) for text in self.texts for rank, phrase in enumerate(text.phrases[: self.top], 1)]
        return Table.of(
            {
                "document": [document for document, _, _ in rows],
                "rank": [rank for _, rank, _ in rows],
                "phrase": [phrase.text for _, _, phrase in rows],
                "score": [phrase.score for _, _, phrase in rows],
                "places": [len(phrase.places) for _, _, phrase in rows],
            }
        )

    @property
    def trained(self) -> str:
        """A sentence that says what the heads' weights were learnt from, and how well they find keywords in other
        documents.
        """
        return self.finder.trained.sentence

    @property
    def signature(self) -> str:
        """The signature: the model, the texts, and what the weights were learnt from."""
        trained = self.finder.trained
        read = "\f".join(" ".join(word.form for word in text.document.words) for text in self.texts)
        digest = hashlib.sha256(read.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        learnt = f"{trained.corpus}:{trained.texts}"
        return f"headscope:{versions()['headscope']}|model:{trained.model}@{trained.fingerprint[:8]}|learnt:{learnt}|text:{digest}"

    def plot(self, **options: Any) -> Figure:
        """The text shaded by weight, its best phrases underlined and listed, as a matplotlib figure with the `options`
        of all figures.
        """
        from headscope.studies.keywords.figures import shaded_text

        if len(self.texts) > 1:
            raise RunError(f"a picture can show one text, not {len(self.texts):,}", "Write a page: -o page.html")
        with using(find_look(options)):
            return shaded_text(self.texts[0], self.top, self.signature)

    def page(self) -> str:
        """One HTML page that works offline."""
        from headscope.views.shaded import page

        return page(self.texts, self.top, self.signature)

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write a page (.html) or a picture (.svg, .pdf, .png) with the `options` of figures; return its path."""
        return save_view(path, self.page, self.plot, options)

    def _repr_html_(self) -> str:
        """The page in a sandboxed frame, which runs no scripts."""
        words = sum(len(text.document.words) for text in self.texts)
        height = min(260 + 2 * words + 26 * sum(min(self.top, len(text.phrases)) for text in self.texts), 900)
        style = f"width:100%;height:{height}px;border:0;resize:vertical;overflow:auto"
        return f'<iframe srcdoc="{escape(self.page())}" sandbox title="headscope: keywords" style="{style}"></iframe>'

    def __repr__(self) -> str:
        lines = []
        for text in self.texts[:5]:
            best = ", ".join(f"{phrase.text} {phrase.score:.2f}" for phrase in text.phrases[: min(self.top, 8)])
            lines.append(f"{text.document.id}: {best or 'nothing found'}")
        more = [f"and {len(self.texts) - 5:,} more texts"] if len(self.texts) > 5 else []
        return "\n".join([*lines, *more, f"{self.trained}."])
