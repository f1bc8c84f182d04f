"""Jacobians of layers by products with vectors: any layer, backwards from targets or forwards from sources.

    G   within a layer: one product per target and vector, backwards
    G*  from the input of the first layer: one product per source and vector, forwards, gives all layers and targets;
        for the gradient of one number per target (the norms `sum` and `mean`), backwards is cheaper

Layers are processed one after the other, so that only one layer's graph exists at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import torch

from headscope.errors import ModelError
from headscope.models.jacobian import linear
from headscope.models.jacobian.blocks import Block
from headscope.models.jacobian.layers import Layer
from headscope.models.jacobian.norms import NormReading
from headscope.models.jacobian.targets import held

if TYPE_CHECKING:
    from jaxtyping import Float

    Rows = Float[torch.Tensor, "row token feature"]
    Sizes = Float[torch.Tensor, "source target"]

T = TypeVar("T")


class Pairs(NamedTuple):
    """The tokens between which influence is computed: from these sources to these targets."""

    sources: Sequence[int]
    targets: Sequence[int]


HELD = 2**26  # numbers in the rows that are held at once: 256 MiB in float32, and as much again for a layer's results
CHUNK = 2**21  # numbers in the rows that go through a layer at once
KNOWN = 2**24  # numbers that are computed at once if the layer is a known block: 64 MiB in float32


class NoProductError(ModelError):
    """A layer with an operation that torch cannot differentiate in this direction for many vectors at once."""


def pull(layer: Layer, rows: Rows) -> Rows:
    """Each row times the Jacobian of the layer: from outputs back to inputs."""
    _, back = torch.func.vjp(layer.function, layer.states)  # type: ignore[misc]
    return _mapped(layer, lambda row: back(row)[0], rows)


def push(layer: Layer, rows: Rows) -> Rows:
    """The Jacobian of the layer times each row: from inputs to outputs."""
    function = layer.function
    return _mapped(layer, lambda row: torch.func.jvp(function, (layer.states,), (row,))[1], rows)


def _mapped(layer: Layer, product: Callable[[torch.Tensor], torch.Tensor], rows: Rows) -> Rows:
    try:
        with warnings.catch_warnings():
            # Some operations of mixtures of experts run row by row, which is slow but correct.
            warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
            mapped = torch.func.vmap(product, randomness=layer.randomness, chunk_size=max(1, CHUNK // rows[0].numel()))
            products: torch.Tensor = mapped(rows)
    except (RuntimeError, NotImplementedError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise NoProductError(
            f"{type(layer.module).__name__} cannot be differentiated for many vectors at once ({str(error).splitlines()[0]})",
            "Use attention alone (kind A), or other kinds",
        ) from error
    return products.detach()


def within(layer: Layer, reading: NormReading) -> tuple[Sizes, Sizes]:
    """G of a layer and its standard errors."""
    found = [
        reading(pull(layer, reading.placed(targets, len(layer.states))).view(len(targets), -1, *layer.states.shape))
        for targets in _blocks(layer.states, len(reading.vectors))
    ]
    sizes, errors = (torch.cat(parts).T for parts in zip(*found, strict=True))
    return sizes, errors


def forwards(
    layers: Sequence[Layer],
    reading: NormReading,
    known: Sequence[Block | str] = (),
    pairs: Pairs | None = None,
    progress: Callable[[float], None] | None = None,
    beside: Callable[[int], None] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """G* of all layers [layer, source, target] and its standard errors, forwards from sources. Known blocks go through
    `linear`.

    With `pairs`, only their sources are computed, in proportionally less time. All others are 0, and in causal blocks
    so are the targets after the last token of the pairs. `progress` is called with the share that is done. `beside` is
    called once with the number of each layer, while its block holds O and P, if it does.
    """
    found = []
    states = layers[0].states
    places = torch.arange(len(states), device=states.device) if pairs is None else torch.tensor(pairs.sources, device=states.device)
    causal = all(isinstance(block, Block) and block.causal for block in known or [""])
    width = len(states) if pairs is None or not causal else 1 + max(*pairs.targets, *pairs.sources)
    parts = list(_blocks(states, len(reading.vectors), len(places)))
    upwards = list(zip(layers, known or [""] * len(layers), strict=True))
    for number, some in enumerate(parts):
        rows = reading.placed(places[some], width)
        starts = places[some].repeat_interleave(len(reading.vectors)).tolist()
        each = len(rows) / 2 if causal else len(rows)  # rows that reach a token, on average
        steps = []
        for place, (layer, block) in enumerate(counted(upwards, progress, number, len(parts))):
            with ExitStack() as stack:
                if isinstance(block, Block):
                    if (beside is not None and pairs is None) or linear.worthwhile(block, each):
                        stack.enter_context(held(block))
                    rows = linear.push(block, rows, KNOWN, starts)
                else:
                    rows = push(layer, rows)
                if beside is not None and number == 0:
                    beside(place)
            steps.append(reading(rows.reshape(len(some), -1, *rows.shape[1:])))
        found.append([torch.stack(parts) for parts in zip(*steps, strict=True)])
    both = [torch.cat(parts, 1) for parts in zip(*found, strict=True)]
    whole = [torch.nn.functional.pad(part, (0, len(states) - width)) for part in both]
    sizes, errors = (part.new_zeros(len(part), len(states), len(states)).index_copy(1, places, part) for part in whole)
    return sizes, errors


def backwards(
    layers: Sequence[Layer], reading: NormReading, known: Sequence[Block | str] = (), progress: Callable[[float], None] | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """G* of all layers [layer, source, target] and its standard errors, from the targets of each layer backwards
    through the layers below it. Known blocks go through `linear`.
    """
    found = []
    parts = list(_blocks(layers[0].states, len(reading.vectors) * len(layers)))
    downwards = list(zip(reversed(layers), reversed(known or [""] * len(layers)), strict=True))
    for number, targets in enumerate(parts):
        start = reading.placed(targets, len(layers[0].states))
        rows = start[:0]
        for layer, block in counted(downwards, progress, number, len(parts)):
            rows = torch.cat([start, rows])  # this layer's rows first, then those of the layers above
            if isinstance(block, Block) and linear.worthwhile(block, len(rows)):
                rows = linear.pull(block, rows, KNOWN)
            else:
                rows = pull(layer, rows)
        found.append(reading(rows.reshape(len(layers), len(targets), -1, *rows.shape[1:])))
    sizes, errors = (torch.cat(parts, 1).transpose(1, 2) for parts in zip(*found, strict=True))
    return sizes, errors


def counted(items: Sequence[T], progress: Callable[[float], None] | None, part: int = 0, parts: int = 1) -> Iterator[T]:
    """The items of one of several `parts` of some work. After each item, `progress` is called with the share of
    all parts that is done.
    """
    for number, item in enumerate(items, 1):
        yield item
        if progress is not None:
            progress((part + number / len(items)) / parts)


def _blocks(states: torch.Tensor, vectors: int, count: int | None = None) -> Iterator[torch.Tensor]:
    """The numbers of all positions, or of the first `count`, in groups of about equal size for which `vectors` rows per
    position fit into memory.
    """
    length = len(states) if count is None else count
    most = max(1, HELD // (vectors * states.numel()))
    step = -(-length // -(-length // most))
    return (torch.arange(start, min(start + step, length), device=states.device) for start in range(0, length, step))
