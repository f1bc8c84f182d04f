"""Value zeroing (Mohebbi et al. 2023): how far the output of a layer turns when a token's value vector is set to 0.

    C[i, j] = 1 − cos(x̃_i, x̃_i with v_j = 0 in all heads), rows scaled to sum to 1; x̃ is the output of the whole layer

It is defined per layer: a site has one map. A layer is run again once per token, several copies of a text at a time.
Its weights do not depend on values, so that the output of the heads without token j is their output minus α_ij v_j.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_map

from headscope.core.heads import Site
from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.models import capture
from headscope.models.dry_run import alone, dry_inputs, small_windows
from headscope.models.maps.base import AttentionMaps
from headscope.models.model import Model
from headscope.models.restart import layer_of

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.models.capture import Attention, Call, Consumer, ValueConsumer

    Contexts = Float[torch.Tensor, "copy query head d"]
    States = Float[torch.Tensor, "copy query feature"]

TOKENS, CUDA_TOKENS = 4096, 65536  # in all copies of a text that go through a layer at once
_ROUNDING = 1e-5


@dataclass(frozen=True)
class _LayerCall:
    """One call of a layer over one text: its arguments and its output. `place` is the number of attention calls in the
    layer before the one that is measured.
    """

    network: Any
    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    output: States
    place: int

    def again(self, copies: int, answer: Contexts | None = None, without: int | None = None) -> States:
        """The layer's output for `copies` copies of its text if its heads give `answer`, or if the value of key number
        `without` is 0.
        """
        calls = count()

        def attend(eager: Attention, module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
            if next(calls) != self.place:
                return capture.unwatched(eager, module, *args, **kwargs)
            if answer is not None:
                return answer, None
            value = args[2].clone()
            value[:, :, without] = 0
            return eager(module, *args[:2], value, *args[3:], **kwargs)[0], None

        def repeat(given: Any) -> Any:
            batched = isinstance(given, torch.Tensor) and given.ndim > 1 and len(given) == 1
            return given.expand(copies, *given.shape[1:]).contiguous() if batched else given

        with capture.tapped(self.network, attend):
            return _hidden(self.module.forward(*tree_map(repeat, self.args), **tree_map(repeat, dict(self.kwargs))))


class ValueZeroing(AttentionMaps):
    """The value-zeroing maps of a model. That its layers can be run again is verified on a dry run."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        if model.capture != "interface":
            raise self._refused("its attention is read from its outputs, which do not include its values")
        if model.network.dtype not in (torch.float32, torch.float64):
            raise ModelError(f"the small changes of value zeroing are lost in the rounding of {model.dtype}", "Use --dtype float32")
        self._layers = [layer_of(model.network, site.module) for site in model.sites]
        if None in self._layers:
            raise self._refused("its attention modules are not in a list of layers")
        self._places: dict[int, int] = {}
        with small_windows(model.network), torch.inference_mode():
            self._verify(alone(dry_inputs(model.network), 0))

    @property
    def sites(self) -> tuple[Site, ...]:
        """The model's sites, each with one map."""
        return tuple(replace(site, heads=1, kv_heads=1) for site in self.model.sites)

    @property
    def needs_maps(self) -> str | None:
        """Value zeroing always makes maps: a row is known only when all rows of the layer are."""
        return "value zeroing makes maps"

    def passes(self, tokens: int) -> int:
        """Each layer is run once, and once more for each token."""
        return 1 + tokens

    def stream(self, texts: Sequence[Encoded], consume: Consumer, wanted: frozenset[int], values: ValueConsumer | None = None) -> None:
        """Pass the maps of each wanted site to `consume`. Texts are processed one by one, without padding. A layer has
        one map for all its heads, so that no values are passed on.
        """
        with torch.inference_mode():
            found = [self.of_text(self.model.inputs([text]), wanted) for text in texts]
            shared: dict[tuple[int, ...], torch.Tensor | None] = {}
            for site in sorted(wanted):
                maps, visible = zip(*(one[site] for one in found), strict=True)
                key = tuple(map(id, visible))  # layers with the same masks receive the same tensor
                if key not in shared:
                    seen = [
                        torch.ones_like(one, dtype=torch.bool) if mask is None else mask for one, mask in zip(maps, visible, strict=True)
                    ]
                    shared[key] = None if all(mask is None for mask in visible) else _padded(seen)[:, 0]
                consume(site, _padded(maps), shared[key], None)

    def of_text(self, inputs: Mapping[str, torch.Tensor], wanted: frozenset[int]) -> dict[int, tuple[torch.Tensor, torch.Tensor | None]]:
        """The maps of one text [1, query, key] by site, and which keys their rows could see [1, query, key]."""
        maps: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}

        def keep(site: int, call: Call, visible: torch.Tensor | None, layer: _LayerCall) -> None:
            maps[site] = turns(layer, call)[None], visible

        with torch.inference_mode():
            self._walk(inputs, wanted, keep)
        return maps

    def _walk(
        self,
        inputs: Mapping[str, torch.Tensor],
        wanted: frozenset[int],
        handle: Callable[[int, Call, torch.Tensor | None, _LayerCall], None],
    ) -> None:
        """Run the model once over one text, and `handle` each wanted attention call when its layer is done."""
        calls: list[tuple[int, Call]] = []
        visible: dict[int, torch.Tensor | None] = {}

        def note(site: int, call: Call) -> Call:
            calls.append((site, call))
            return call

        def see(site: int, weights: torch.Tensor, seen: torch.Tensor | None, *_: object) -> None:
            visible[site] = seen

        def leave(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
            for place, (site, call) in enumerate(calls):
                layer = _LayerCall(self.model.network, module, args, kwargs, _hidden(out), self._places.setdefault(site, place))
                handle(site, call, visible[site], layer)
            calls.clear()

        with ExitStack() as hooks:
            for layer in {id(layer): layer for layer in self._layers}.values():
                assert layer is not None
                hooks.callback(layer.register_forward_hook(leave, with_kwargs=True).remove)
            self.model.stream(inputs, see, wanted, exchange=note)

    def _verify(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Refuse a model if a layer gives another output when it is run again, or if setting a value to 0 does not have
        the same effect as subtracting what the value carries.
        """
        wrong: list[str] = []

        def check(site: int, call: Call, _: torch.Tensor | None, layer: _LayerCall) -> None:
            rows, keys = call.weights.shape[2:]
            name = self.model.sites[site].name
            if layer.output.ndim != 3 or layer.output.shape[:2] != (1, rows):
                wrong.append(f"the layer of {name} does not give one vector per token")
                return
            contexts, carried = _contexts(call)
            if not _near(layer.again(2, torch.cat([contexts, contexts]))[1:], layer.output):
                wrong.append(f"the layer of {name} gives something else when it is run again")
            elif not _near(layer.again(1, contexts - carried(slice(keys // 2, keys // 2 + 1))), layer.again(1, without=keys // 2)):
                wrong.append(f"the heads of {name} do not give the sum of weighted values")

        try:
            self._walk(inputs, frozenset(range(len(self.model.sites))), check)
        except ModelError:
            raise
        except Exception as error:
            raise self._refused(f"a layer fails when it is run again ({type(error).__name__}: {str(error).strip()[:100]})") from error
        if len(self._places) < len(self.model.sites):
            wrong.append(f"{self.model.sites[len(self._places)].name} is not in a layer that was run")
        if wrong:
            raise self._refused(wrong[0])

    def _refused(self, why: str) -> ModelError:
        return ModelError(f"{type(self.model.network).__name__} has no value zeroing that can be verified: {why}", "Use --map weights")


def turns(layer: _LayerCall, call: Call) -> Float[torch.Tensor, "query key"]:
    """1 − cos of a layer's output with and without the value of each key, each row scaled to sum to 1."""
    contexts, carried = _contexts(call)
    rows, keys = call.weights.shape[2:]
    copies = max(1, (CUDA_TOKENS if contexts.is_cuda else TOKENS) // rows)
    directions = torch.nn.functional.normalize(layer.output.double(), dim=-1)
    found = contexts.new_empty((rows, keys), dtype=torch.float64)
    for start in range(0, keys, copies):
        part = slice(start, min(start + copies, keys))
        outputs = layer.again(part.stop - start, contexts - carried(part))
        # Half the squared distance of two unit vectors is 1 − cos, without losing small angles to rounding.
        turned = torch.nn.functional.normalize(outputs.double(), dim=-1) - directions
        found[:, part] = turned.square().sum(-1).T / 2
    found = found.masked_fill((call.weights[0] == 0).all(0), 0)  # a key that no head attends to has no effect
    return (found / found.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)).float()


def _contexts(call: Call) -> tuple[Contexts, Callable[[slice], Contexts]]:
    """The outputs of the heads of a call, [1, query, head, d], and a function that returns what they carry from some
    keys, one copy per key.
    """
    assert call.value is not None, "a call that a tap saw has values"
    weights = call.weights[0].to(call.value.dtype)
    values = call.value[0].repeat_interleave(len(weights) // call.value.shape[1], 0)

    def carried(keys: slice) -> Contexts:
        return torch.einsum("hqk,hkd->kqhd", weights[:, :, keys], values[:, keys])

    return (weights @ values).transpose(0, 1)[None], carried


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two outputs differ by no more than rounding."""
    return one.shape == other.shape and float((one - other).abs().max()) <= _ROUNDING * float(other.abs().max())


def _hidden(out: Any) -> States:
    """The hidden states in the output of a layer: its first element, or all of it."""
    states: torch.Tensor = out[0] if isinstance(out, tuple | list) else out
    return states


def _padded(texts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Maps of texts of different sizes as one batch, padded with zeros."""
    sizes = [max(text.shape[axis] for text in texts) for axis in (-2, -1)]
    batch = texts[0].new_zeros((len(texts), *texts[0].shape[:-2], *sizes))
    for row, text in zip(batch, texts, strict=True):
        row[..., : text.shape[-2], : text.shape[-1]] = text
    return batch
