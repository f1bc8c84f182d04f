"""A summary of a model that fits one screen: what it is, how its attention is read, and the memory that texts take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from headscope.core.heads import KINDS, Kind, Site
from headscope.models.inspection.description import positions, predicts, window
from headscope.models.memory import Memory, estimate

if TYPE_CHECKING:
    from headscope.models.model import Model

WIDTH, LABEL = 80, 14  # columns of the screen, and of the names of facts
LENGTHS = (128, 512, 2_048, 8_192, 32_768, 131_072)
UNLIMITED = 8_192  # tokens of the longest text in the table of a model that sets no limit
_CAPTURE = {
    "interface": "layer by layer, one layer held at a time",
    "outputs": "all layers at once, from the model's outputs (it bypasses transformers' attention interface)",
}


@dataclass(frozen=True)
class ModelDescription:
    """The output of `headscope inspect`: `facts` by name, the `sites`, and by number of tokens the `memory` of a batch
    of `batch` texts. `needs_maps` is the reason why a model is never measured without maps, None if it can be.
    """

    name: str
    facts: dict[str, str]
    sites: tuple[Site, ...]
    memory: dict[int, Memory]
    batch: int
    needs_maps: str | None

    @classmethod
    def of(cls, model: Model, lengths: Sequence[int] = (), batch: int = 1) -> ModelDescription:
        """The summary of a loaded model; `lengths` are added to the default ones of the memory table."""
        limit = model.max_length
        usual = [length for length in LENGTHS if length <= (limit or UNLIMITED)] + ([limit] if limit is not None else [])
        memory = {length: estimate(model, batch, length) for length in sorted({*usual, *lengths})}
        weights = next(iter(memory.values())).weights
        count = sum(parameter.numel() for parameter in model.network.parameters())
        reason = model.needs_maps
        without = "verified: measures of rows, and relations, need no maps" if reason is None else f"not possible: {reason}"
        facts = {
            "architecture": f"{type(model.network).__name__} ({model.network.config.model_type}), fingerprint {model.fingerprint}",
            "attention": "; ".join(_heads(model, kind) for kind in KINDS if any(site.kind == kind for site in model.sites)),
            "window": window(model.network),
            "positions": positions(model.network),
            "longest text": f"{limit:,} tokens" if limit is not None else "the model sets no limit",
            "maps": f"{_CAPTURE[model.capture]}; verified when loaded",
            "without maps": without,
            "predicts": predicts(model),
            "weights": f"{count / 1e6:,.1f} million parameters, {model.dtype}, {_size(weights)} on {model.device}",
        }
        return cls(model.name, facts, model.sites, memory, batch, reason)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The summary in lines of at most 80 columns."""
        yield self.name
        for name, fact in self.facts.items():
            for number, line in enumerate(wrap(fact, WIDTH - LABEL, break_long_words=True)):
                yield f"{name if number == 0 else '':{LABEL}}{line}"
        texts = "a text" if self.batch == 1 else f"{self.batch} texts"
        yield f"memory of {texts} beside the weights (estimated):"
        yield f"{'tokens':>12}{'with maps':>14}{'without maps':>16}{'maps of a layer':>18}{'of all layers':>16}"
        for length, need in self.memory.items():
            without = "-" if self.needs_maps is not None else _size(need.activations)
            sizes = _size(need.maps + need.activations), without, _size(need.layer), _size(need.everything)
            yield f"{length:>12,}{sizes[0]:>14}{sizes[1]:>16}{sizes[2]:>18}{sizes[3]:>16}"


def _heads(model: Model, kind: Kind) -> str:
    """Layers × heads of a kind, and key-value heads if they are fewer."""
    sites = [site for site in model.sites if site.kind == kind]
    heads, groups = (" or ".join(map(str, sorted({*numbers}))) for numbers in zip(*((s.heads, s.kv_heads) for s in sites), strict=True))
    grouped = f" ({groups} key-value heads)" if groups != heads else ""
    return f"{kind}, {len(sites)} layers × {heads} heads{grouped}, {sum(site.heads for site in sites)} heads in all"


def _size(size: float) -> str:
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 1000 or unit == "GB":
            return f"{size:,.0f} {unit}" if size >= 10 else f"{size:.1f} {unit}"
    raise AssertionError
