"""The view of one text in one model, for a notebook or to save as a page or a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.core.batch import WORD
from headscope.core.document import Document
from headscope.core.heads import HeadId, Kind
from headscope.drawing.look import find_look, using
from headscope.engine.typed_text import typed, write_on
from headscope.errors import RunError
from headscope.gallery.grids import Grid, Level, Specials, check, grid, sides
from headscope.gallery.heads import find_heads
from headscope.gallery.highlight import Highlight, find_highlight
from headscope.gallery.texts import look, quantised
from headscope.models.generation import Decoding, require_generator
from headscope.models.jacobian.choices import Kind as Measure
from headscope.models.model import Model
from headscope.studies.flow.influence import Influence, Layer, find_layers, find_measures
from headscope.views.text import (
    ROOM,
    WHY,
    LoadedText,
    first_shown,
    held_influence,
    look_at,
    measures_on_demand,
    opening_of,
    pack_influence,
    signature,
    text_data,
    text_page,
    title_of,
    with_choice,
)
from headscope.widget.shown import PICTURES, Shown, save_view, suffix_of

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from headscope.drawing.figure import Drawing
    from headscope.views.text import Maps

BESIDE = 1_000_000  # bytes of maps that a notebook keeps beside a live view
FIRST = 3  # heads of a figure or a list if none are named
ALL: Literal["all"] = "all"


class View(Shown):
    """What a model's heads look at in one text. In a notebook it draws itself; `save` writes a page or a figure.

    `level` and `specials` are the initial settings of the view and those of figures, by default `word` and `show`.
    With heads="all" figures are thumbnails of all heads; with `measures` they are heatmaps of influence, of `layers`
    or of their mean. With `decoding` the text is a prompt, and the text that the model generates is shown as well.
    """

    def __init__(
        self,
        model: Model,
        text: str | Document,
        second: str | None = None,
        heads: Sequence[str | HeadId] | Literal["all"] | None = None,
        level: Level | None = None,
        specials: Specials | None = None,
        max_length: int | None = None,
        measures: Sequence[str] | None = None,
        layers: Sequence[Layer] | None = None,
        highlight: Sequence[str] = (),
        relation: str | None = None,
        decoding: Decoding | None = None,
    ) -> None:
        if decoding is not None:
            _require_prompt(model, second, relation)
            level = level or "token"  # a model writes tokens
        check(level or "word", specials or "show")
        self.model = model
        self._decoding = decoding
        self.level, self.specials = level, specials
        self.measures: tuple[Measure, ...] = find_measures(measures) if measures is not None else ()
        self._layers = find_layers(layers, model, model.sites[0].kind if self.measures else None)
        if self._layers and not self.measures and heads != ALL:
            raise RunError("a layer is only for a measure or for all heads", "Use --layer with --measure, or with --heads all")
        self._every = self._heads_of_layers() if heads == ALL else ()
        self._named = find_heads(model, heads) if heads is not None and heads != ALL else None
        if self._named == []:
            raise RunError("no head was named", "Write them as in 8-10,5-4, or omit heads")
        self._typed = typed(model, text, second, max_length)
        if decoding is not None:
            self._typed = write_on(model, self._typed, decoding)
        self.text = self._typed.encoded
        self._influence = Influence(model, self.text)
        self._red = (tuple(highlight), relation)
        self._highlights(head.kind for head in self._named or self._every or model.layout.ids()[:1])  # an error now for an unknown word
        self.height = min(360 + 18 * self.text.cost, 900)

    def _heads_of_layers(self) -> tuple[HeadId, ...]:
        """All heads of the requested layers, or of all layers."""
        if "mean" in self._layers and not self.measures:
            raise RunError("a mean over layers is only for measures of influence", "Name layers by number, or use --measure A --layer mean")
        return tuple(head for head in self.model.layout.ids() if not self._layers or head.layer + 1 in self._layers)

    def highlight(self, kind: Kind) -> Highlight:
        """The words and links that are red in maps of a kind of attention."""
        return find_highlight(*self._red, *sides(self.text, kind))

    def _highlights(self, kinds: Iterable[Kind]) -> dict[Kind, Highlight]:
        """The highlights of several kinds of attention whose texts have the words; an error if none has."""
        found: dict[Kind, Highlight] = {}
        missing: list[RunError] = []
        for kind in dict.fromkeys(kinds):
            try:
                found[kind] = self.highlight(kind)
            except RunError as error:
                missing.append(error)
        if not found:
            raise missing[0]
        return found

    @property
    def signature(self) -> str:
        """The signature of the model, the text and the generation."""
        how = "" if self._decoding is None else f"|{self._decoding.signature}"
        return f"{signature(self.model, self.text)}{how}"

    @property
    def generated(self) -> str:
        """The text that the model generated after the prompt; "" if it generated none."""
        start = self.text.generated_from
        return "" if start is None else self.model.tokenizer.decode_after(int(self.text.ids[start - 1]), self.text.ids[start:].tolist())

    def step(self, number: int, head: str | HeadId) -> Float[np.ndarray, "key"]:
        """A head's attention when the model chose the token of a step, counted from 1: the weights of the token before
        it, whose output chose it, on all tokens so far.
        """
        start = self.text.generated_from
        steps = 0 if start is None else len(self.text) - start
        if start is None or not 1 <= number <= steps:
            raise RunError(f"there is no step {number}", f"Steps are 1 to {steps}" if steps else "Generate tokens with generate=")
        read = start + number - 1
        return self.map(head)[read - 1, :read]

    @cached_property
    def note(self) -> str:
        """A note on what was omitted from the text; "" if nothing was."""
        note = self._typed.note
        return f"{note}; {self.model.name} reads the first {len(self.text):,} tokens" if "cut off" in note else note

    @cached_property
    def _looked(self) -> LoadedText:
        return look_at(self.model, self.text, self._named)

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """The named heads, or the heads of the model's first kind of attention, sorted by how clearly they link distant
        words.
        """
        return self._looked.order

    def map(self, head: str | HeadId) -> Float[np.ndarray, "query key"]:
        """A head's weights between tokens."""
        (found,) = find_heads(self.model, [head])
        return self._maps([found])[found]

    def grid(self, head: str | HeadId) -> Grid:
        """A head's map at the view's level, with the words of its rows and columns."""
        (found,) = find_heads(self.model, [head])
        return grid(self.text, found, self.map(found), self.level or "word", self.specials or "show")

    def influence(self, measure: str, layer: Layer = "mean") -> Grid:
        """Influence between words by a measure of the flow study (A, G, G*, rollout, maxflow or norms), in one layer or
        as the mean over layers.

        Rows are the influenced words, columns the influencing ones.
        """
        (found,) = find_measures([measure])
        return self._influence.grid(found, layer, self.level or "word", self.specials or "show")

    def grids(self) -> dict[str, Grid]:
        """The contents of a figure or a list by title: the named measures and layers, or the named heads, else the
        first three heads.
        """
        if self.measures:
            if self._named or self._every:
                raise RunError("a figure shows either heads or a measure", "Omit --heads or --measure, or write a page: -o page.html")
            mean = f"mean over {self._influence.layers} layers"
            return {
                f"{measure}, {mean if layer == 'mean' else f'layer {layer}'}": self.influence(measure, layer)
                for measure in self.measures
                for layer in self._layers or ("mean",)
            }
        return {f"Head {head}": shown for head, shown in self._head_grids().items()}

    def _head_grids(self) -> dict[HeadId, Grid]:
        wanted = self._named or self._every or self.heads[:FIRST]
        shown: dict[HeadId, Grid] = {}
        for _, layer in groupby(wanted, lambda head: (head.kind, head.layer)):  # one pass per layer, if not all maps are kept
            maps = self._maps(heads := list(layer))
            shown |= {head: grid(self.text, head, maps[head], self.level or "word", self.specials or "show") for head in heads}
        return shown

    def _maps(self, heads: Sequence[HeadId]) -> Maps:
        kept = self._looked.maps
        return kept if all(head in kept for head in heads) else look(self.model, self.text, heads)

    def figure(self, **options: Any) -> Drawing:
        """A figure: heatmaps of influence, thumbnails of all heads, or the named heads in the style of Clark et al.'s
        Figure 5. `options` are those of all figures: `width`, `font_size`, `style`, `signature`.
        """
        with using(find_look(options)):
            figure = self._figure()
        what = "attention of heads" if not self.measures else f"influence between words by {', '.join(self.measures)}"
        figure.caption = replace(figure.caption, about=f"{what} of {self.model.name} in “{opening_of(self.text, 60)}”")
        return figure

    def _figure(self) -> Drawing:
        from headscope.figures import influence, lines, model_view

        read = [side for side in (self.text, self.text.target) if side is not None]
        n = [sum(role == WORD for role in side.roles) if self.level == "token" else len(side.words) for side in read]
        size = f"{' and '.join(map(str, n))} {self.level or 'word'}s"
        if self.text.generated_from is not None:
            size += f"; the last {len(self.text) - self.text.generated_from} tokens are generated (shaded)"
        if self.measures:
            panels, signed = self.grids(), "|".join([self.signature, *map(self._influence.settings, self.measures)])
            return influence.draw(panels, size, signed, self.highlight(self.model.sites[0].kind))
        grids = self._head_grids()
        red = self._highlights(head.kind for head in grids)
        highlights = {head: red[head.kind] for head in grids if head.kind in red}
        if self._every:
            return model_view.draw(grids, opening_of(self.text, 30), size, self.signature, highlights)
        return lines.draw(grids, size, self.signature, highlights)

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write the view as a page (.html) that works offline, or its figure (.svg, .pdf, .png) with the `options` of
        all figures, and return its path.
        """
        return save_view(path, self.page, self.figure, options)

    def notes(self, path: str | Path | None = None) -> list[str]:
        """Notes on what is omitted from the text, and from the file if the view is saved as `path`."""
        found = [self.note, *(self._influence.note(measure) for measure in self.measures)]
        suffix = suffix_of(Path(path)) if path is not None else ""
        if suffix == "html":
            found.append(self._looked.note)
        if suffix in PICTURES and suffix != "svg":
            from headscope.drawing.words import lacking

            if letters := lacking(word for shown in self.grids().values() for word in (*shown.rows, *shown.columns)):
                found.append(
                    f"the figure's font has no {' '.join(letters[:10])}, which are drawn as boxes; an .svg shows them in the reader's font"
                )
        return [note for note in found if note]

    def page(self) -> str:
        """One HTML page, with the maps of all heads if they fit."""
        return self._page(self._looked.maps, "; ".join(self.notes("page.html")))

    def frame_page(self) -> str:
        """The page with the maps of all heads if they are small, else of the heads that are shown first."""
        if sum(weights.size * 2 for weights in self._looked.maps.values()) <= BESIDE:
            return self.page()
        first = self._first()
        note = f"{len(first)} of {self.model.layout.size} heads are kept without a kernel"
        return self._page({head: self.map(head) for head in first}, "; ".join([*self.notes(), note]))

    def _page(self, maps: Maps, note: str) -> str:
        held = held_influence(self._influence, self.measures, ROOM // 2)
        return text_page(self._payload(maps, held), title_of(self.model, self.text), note)

    def data(self) -> dict[str, Any]:
        """The data that the live view draws first: the text and the maps of the shown heads. It requests other maps
        when they are chosen.
        """
        maps = {head: self.map(head) for head in self._first()}
        return {"text": self._payload(maps, {"measures": measures_on_demand(self.measures), "missing": {}, "held": {}})}

    def bytes_of(self, head: str) -> bytes:
        """A head's map in the format of the live view."""
        return quantised(self.map(head)).tobytes()

    def influence_of(self, measure: str) -> dict[str, Any]:
        """A measure of influence in the format of the live view."""
        return pack_influence(self._influence, *find_measures([measure]))

    def _first(self) -> tuple[HeadId, ...]:
        return tuple(self._named or self._every[:1] or self.heads[:1])

    def _payload(self, maps: Maps, influence: dict[str, Any]) -> dict[str, Any]:
        data = with_choice(text_data(self.model, self._typed, self._first(), maps), self.level, self.specials)
        data["signature"] = self.signature
        if self._decoding is not None:
            data["step"] = 1
        data["influence"] = {**influence, **first_shown(self.measures, self._layers)}
        if self.measures or self._every:
            data["view"] = "influence" if self.measures else "model"
        if self._every and self._layers:
            data["layers"] = sorted({head.layer + 1 for head in self._every})
        if any(self._red):
            named, relation = self._red
            red = self._highlights(site.kind for site in self.model.sites)
            pairs = {kind: sorted(map(list, highlight.pairs), key=str) for kind, highlight in red.items()}
            data["highlight"] = {"name": ", ".join([*named, *([relation] if relation else [])]), "pairs": pairs}
        return data if self._named or self._every else {**data, "why": WHY}

    def __repr__(self) -> str:
        lines = [f"View({self.signature})"]
        for head in self._first()[:FIRST]:
            shown = self.grid(head)
            pairs = sorted(((weight, word, to) for n, word in enumerate(shown.rows) for to, weight in shown.strongest(n, 1)), reverse=True)[
                :4
            ]
            lines.append(f"  head {head}: " + ", ".join(f"{word} → {to} {weight:.2f}" for weight, word, to in pairs))
        return "\n".join([*lines, '  In a notebook this is drawn; .save("page.html") or .save("figure.svg") writes it'])


def _require_prompt(model: Model, second: str | None, relation: str | None) -> None:
    """Raise an error if the text cannot be continued, or if generated text cannot be shown as requested."""
    require_generator(model)
    if second is not None:
        raise RunError("a model continues one text, not a pair", "Omit the second text, or --generate")
    if relation is not None:
        raise RunError("generated words have no annotation, so no relation can be shown", "Omit --relation, or --generate")
