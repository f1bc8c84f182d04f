"""Influence between the tokens of one text, by the measures of the flow study, and as a grid to draw (Westera §4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from headscope.core.hashing import digest
from headscope.core.heads import Kind as HeadKind
from headscope.core.suggest import choose_from
from headscope.encoding.texts import Encoded
from headscope.encoding.words import group
from headscope.errors import RunError
from headscope.gallery.grids import Grid, Level, Specials, arranged, sides
from headscope.models.jacobian.choices import ALL_KINDS, Kind
from headscope.models.jacobian.flow import Flow, flow
from headscope.models.jacobian.products import Pairs
from headscope.models.model import Model
from headscope.results.specification import validated
from headscope.studies.flow.grouping import to_words
from headscope.studies.flow.spec import LONGEST, FlowSpec

if TYPE_CHECKING:
    from jaxtyping import Float

Layer = int | Literal["mean"]  # a layer counted from 1, or the mean over all layers
CHEAP: tuple[Kind, ...] = ("A", "rollout", "norms")  # measures that need one forward pass
ABOUT: dict[Kind, str] = {
    "A": "attention, mean over the heads of a layer",
    "G": "Frobenius norm of the Jacobian of a layer's output with respect to its input",
    "G*": "Frobenius norm of the Jacobian of a layer's output with respect to the embeddings",
    "rollout": "attention rollout: shares of the input tokens",
    "maxflow": "attention flow: maximum flow down to the input tokens",
    "norms": "norm of what the heads of a layer carry: values weighted by attention",
}

_ALIASES = {"norm": "norms"}


def text_flow(
    model: Model, text: Encoded, spec: FlowSpec, pairs: Pairs | None = None, progress: Callable[[Kind, float], None] | None = None
) -> Flow:
    """The measures of a specification on one text, between all tokens or some; `progress` receives a measure and the
    share of it that is done.

    The random vectors of a sketch depend only on the text and the seed.
    """
    seed = int.from_bytes(digest(spec.seed, text.ids.tobytes(), size=6), "little")
    return flow(
        model,
        text,
        spec.measures,
        spec.norm or "frobenius",
        spec.method,
        spec.probes,
        seed,
        longest=LONGEST,
        mode=spec.mode or "eval",
        pairs=pairs,
        progress=progress,
    )


def find_measures(names: Iterable[str]) -> tuple[Kind, ...]:
    """The measures of these names, each once; `norm` is `norms`."""
    kinds: dict[Kind, None] = {}
    for name in names:
        kind = next((kind for kind in ALL_KINDS if kind == _ALIASES.get(name, name)), None)
        if kind is None:
            raise RunError(f"measure {name!r} is unknown", choose_from(name, ALL_KINDS))
        kinds[kind] = None
    if not kinds:
        raise RunError("no measure is named", f"Use one of {', '.join(ALL_KINDS)}")
    return tuple(kinds)


def find_layers(layers: Iterable[Layer] | None, model: Model, kind: HeadKind | None = None) -> tuple[Layer, ...]:
    """The named layers, each once; an error for one that the model or this kind of attention lacks."""
    last = max(site.layer for site in model.sites if kind in (None, site.kind)) + 1
    named = tuple(dict.fromkeys(layers or ()))
    if unknown := [layer for layer in named if layer != "mean" and not (isinstance(layer, int) and 1 <= layer <= last)]:
        raise RunError(f"{model.name} has no layer {unknown[0]}", f"Its layers are 1 to {last}; mean is their mean")
    return named


class Influence:
    """Influence between the tokens of one text (for an encoder-decoder: in its encoder), computed on demand."""

    def __init__(self, model: Model, text: Encoded) -> None:
        self._model, self._text = model, text
        self._flows: dict[Kind, Flow] = {}
        self._side, _ = sides(text, model.sites[0].kind)

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return sum(site.kind == self._model.sites[0].kind for site in self._model.sites)

    @property
    def size(self) -> int:
        """Bytes of one measure in a page, before base64."""
        return 2 * self.layers * len(self._side) ** 2

    def flow(self, measure: Kind) -> Flow:
        """The measure as the flow study computes it with its default settings."""
        if measure not in self._flows:
            self._flows[measure] = text_flow(self._model, self._text, validated(FlowSpec, {"measures": (measure,)}))
        return self._flows[measure]

    def values(self, measure: Kind) -> Float[np.ndarray, "layer source target"]:
        """Entry (i, j) is the influence of token i on token j."""
        return self.flow(measure).values[measure]

    def grid(self, measure: Kind, layer: Layer = "mean", level: Level = "word", specials: Specials = "show") -> Grid:
        """One layer, or the mean over layers: rows are the influenced tokens, columns the influencing ones, as in a map
        of attention.

        Between words it is the mean over the tokens of both, as in the flow study; a special token is its own word.
        """
        find_layers([layer], self._model, self._model.sites[0].kind)
        values = self.values(measure)
        chosen = values.mean(0, keepdims=True) if layer == "mean" else values[layer - 1 : layer]
        if level == "word":
            side = self._side
            groups, forms, _ = group(side.word_of, side.roles, [word.form for word in side.words], side.pieces)
            chosen = to_words(chosen, groups, len(forms))
        return arranged(self._side, self._side, chosen[0].T, level, specials)

    def note(self, measure: Kind) -> str:
        """How a sketched measure was estimated, and its standard error; "" for an exact one."""
        flow = self.flow(measure)
        errors = flow.errors[measure]
        if errors is None:
            return ""
        values = flow.values[measure]
        share = float((errors[values > 0] / values[values > 0]).mean())
        return f"{'; '.join(flow.notes)}: a relative standard error of {share:.1%} per entry on average"

    def settings(self, measure: Kind) -> str:
        """The settings that could change a measure, for a signature: `measure:G*|norm:frobenius|probes:32|seed:0`."""
        spec = validated(FlowSpec, {"measures": (measure,)})
        norm = f"|norm:{spec.norm or 'frobenius'}" if measure in ("G", "G*") else ""
        sketch = f"|probes:{spec.probes}|seed:{spec.seed}" if self.flow(measure).method[measure] == "sketch" else ""
        return f"measure:{measure}{norm}{sketch}"
