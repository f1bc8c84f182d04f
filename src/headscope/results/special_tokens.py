"""The names of the special tokens of a run's model on pages and in figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headscope.core.batch import CLS, SEP
from headscope.core.heads import HeadLayout
from headscope.results.gallery import Gallery
from headscope.results.table import Table

FIRST = "first token"
_GENERIC = {CLS: "[CLS]", SEP: "[SEP]"}


@dataclass(frozen=True)
class SpecialTokens:
    """The tokens with which the model opens and closes its texts; None for a token that it does not have.

    If `first` is true, texts name the first token instead of the opening one: the heads of a decoder attend to the
    first token, whatever it is.
    """

    opening: str | None
    closing: str | None
    first: bool = False

    @classmethod
    def of(cls, layout: HeadLayout, tables: Mapping[str, Table], gallery: Gallery | None) -> SpecialTokens:
        """The special tokens of a run: those in its example texts or, without examples, those that its tables count."""
        counted = {row["quantity"] for row in tables["tokens"] if row["n"]} if "tokens" in tables else None
        written: dict[int, str] = {}
        for text in gallery.texts if gallery is not None else ():
            for side in (text["source"], text.get("target", text["source"])):
                for token, role in zip(side["tokens"], side["roles"], strict=True):
                    if role in _GENERIC:
                        written.setdefault(role, token)
        if gallery is None or not gallery.texts:
            known = (
                {CLS: not layout.causal, SEP: not layout.causal}
                if counted is None
                else {CLS: "to_cls" in counted, SEP: "to_sep" in counted}
            )
            written = {role: name for role, name in _GENERIC.items() if known[role]}
        return cls(written.get(CLS), written.get(SEP), layout.causal and (CLS in written or "to_first" in (counted or ())))

    @property
    def uncounted(self) -> frozenset[str]:
        """Quantities that repeat others: `to_first` if there is an opening token, which is then the first."""
        return frozenset({"to_first"}) if self.opening is not None else frozenset()

    @property
    def labels(self) -> list[str]:
        """Each token as the label of a head or a curve: `[CLS]` and `[SEP]`, or `first token`."""
        return [*self._opening(FIRST), *([self.closing] if self.closing is not None else [])]

    @property
    def names(self) -> list[str]:
        """Each token as a sentence names it: `[CLS]` and `[SEP]`, or `the first token`."""
        return [*self._opening(f"the {FIRST}"), *([self.closing] if self.closing is not None else [])]

    def _opening(self, first: str) -> list[str]:
        return [first] if self.first else [self.opening] if self.opening is not None else []

    @property
    def idle(self) -> str | None:
        """The token that takes idle attention: the one that closes a text, or else the one that opens it."""
        return self.closing if self.closing is not None else next(iter(self.names), None)

    def spelled(self, text: str) -> str:
        """A text that names [CLS] and [SEP], with the model's tokens in their place."""
        if self.first:
            name = f"the {FIRST}" if self.opening in (None, "[CLS]") else f"the {FIRST}, {self.opening}"
            text = text.replace("the opening token, [CLS]", name).replace("[CLS]", FIRST)
        elif self.opening is not None:
            text = text.replace("[CLS]", self.opening)
        return text if self.closing is None else text.replace("[SEP]", self.closing)
