"""The weights of single heads (rows of query, key and value, columns of the output projection): how to find them by
name and cut them out.

A tensor with weights of all heads consists of pieces of equal width along one axis, so that a cut is a list of the
pieces that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers.pytorch_utils import Conv1D

from headscope.core.heads import Site
from headscope.errors import ModelError
from headscope.models.capture import HEADLESS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_QUERY = ("query", "q_lin", "q_proj", "q", "q_attn")
_KEY = ("key", "value", "k_lin", "v_lin", "k_proj", "v_proj", "k", "v")
_JOINED = ("c_attn", "Wqkv")  # all queries, then all keys, then all values
_BY_HEAD = ("query_key_value",)  # query, key and value of the first head, then of the second
_OUTPUT = ("out_lin", "out_proj", "o_proj", "c_proj", "o", "dense", "Wo")
_COUNTS = ("num_attention_heads", "num_heads", "n_heads")
_WIDTHS = ("all_head_size", "inner_dim", "split_size")
_REMEDY = "Use gates to switch off its heads; only its weights cannot be cut out"


@dataclass(frozen=True)
class Pieces:
    """A tensor of a network by name, and the pieces along an axis that are kept: pieces `kept` of `of`, each `width`
    numbers wide.
    """

    tensor: str
    axis: int
    width: int
    of: int
    kept: tuple[int, ...]

    def places(self) -> torch.Tensor:
        """The indices along the axis that are kept."""
        return (torch.tensor(self.kept, dtype=torch.long)[:, None] * self.width + torch.arange(self.width)).flatten()


@dataclass(frozen=True)
class Projections:
    """The projections of one attention module, by their paths: `inputs` make queries, keys and values, and `output`
    reads the outputs of the heads.
    """

    site: Site
    inputs: tuple[str, ...]
    output: str
    size: int

    def pieces(self, network: torch.nn.Module, kept: Sequence[int]) -> Iterator[Pieces]:
        """Every tensor that is cut, with the pieces that are kept."""
        group = self.site.heads // self.site.kv_heads
        groups = tuple(sorted({head // group for head in kept}))
        if group > 1 and len(groups) * group != len(kept):
            raise ModelError(
                f"{self.site.name} has {group} heads to one key and value, which are cut out together or not at all",
                f"Cut out heads of a layer by {group}s: 1 to {group}, {group + 1} to {2 * group}, and so on, or use gates",
            )
        for path in self.inputs:
            module = network.get_submodule(path)
            name, columns = path.rpartition(".")[2], len(_bias_like(module))
            width = columns // self.site.heads if name in _BY_HEAD else self.size
            own, each = (groups, self.site.kv_heads) if name in _KEY else (tuple(kept), self.site.heads)
            blocks = range(0, columns // width, each)
            stay = tuple(block + head for block in blocks for head in own)
            yield Pieces(f"{path}.weight", 1 if isinstance(module, Conv1D) else 0, width, columns // width, stay)
            if module.bias is not None:
                yield Pieces(f"{path}.bias", 0, width, columns // width, stay)
        transposed = isinstance(network.get_submodule(self.output), Conv1D)
        yield Pieces(f"{self.output}.weight", 0 if transposed else 1, self.size, self.site.heads, tuple(kept))


def _bias_like(module: Any) -> torch.Tensor:
    """A vector with one number per output feature of a projection."""
    weight: torch.Tensor = module.weight
    return weight[0] if isinstance(module, Conv1D) else weight[:, 0]


def projections(network: PreTrainedModel, site: Site) -> Projections:
    """The projections of a site's heads; an error if their layout is not known."""
    modules = dict(network.named_modules())
    attention = modules.get(site.module)
    linear = {path for path, module in modules.items() if isinstance(module, torch.nn.Linear | Conv1D)}
    inputs = tuple(path for name in (*_QUERY, *_KEY, *_JOINED, *_BY_HEAD) if (path := f"{site.module}.{name}") in linear)
    beside = f"{site.module.rpartition('.')[0]}.output.dense"
    outputs = [path for path in (*(f"{site.module}.{name}" for name in _OUTPUT), beside) if path in linear]
    if attention is None or not inputs or len(outputs) != 1:
        raise ModelError(f"the projections of {site.name} in {type(network).__name__} are not known by name", _REMEDY)
    weight = modules[outputs[0]].weight
    columns = weight.shape[0] if isinstance(modules[outputs[0]], Conv1D) else weight.shape[1]
    size = columns // site.heads
    # T5's bias is handled below, and ALBERT's normalisation comes after the heads.
    known = {*inputs, *outputs, f"{site.module}.relative_attention_bias", f"{site.module}.LayerNorm"}
    for name, parameter in attention.named_parameters():
        path = f"{site.module}.{name}"
        # Norms of queries, of a head's size, are shared by all heads.
        if path.rpartition(".")[0] not in known and tuple(parameter.shape) != (size,):
            raise ModelError(f"{name} of {site.name} in {type(network).__name__} belongs to all heads together", _REMEDY)
    return Projections(site, inputs, outputs[0], size)


def cut(network: PreTrainedModel, found: Projections, kept: Sequence[int]) -> None:
    """Cut all heads except those `kept` out of a network."""
    attention = network.get_submodule(found.site.module)
    for pieces in list(found.pieces(network, kept)):
        path, _, name = pieces.tensor.rpartition(".")
        module = network.get_submodule(path)
        tensor = getattr(module, name)
        left = tensor.detach().index_select(pieces.axis, pieces.places().to(tensor.device)).contiguous()
        setattr(module, name, torch.nn.Parameter(left, requires_grad=tensor.requires_grad))
        _resize(module)
    group = found.site.heads // found.site.kv_heads
    if not kept:
        for path in found.inputs:
            name = path.rpartition(".")[2]
            joined = 3 if "q_attn" not in str(found.inputs) else 2
            times = joined if name in (*_JOINED, *_BY_HEAD) else group if name in _QUERY else 1
            network.set_submodule(path, NoInput(times * found.size))
        network.set_submodule(found.output, Constant(network.get_submodule(found.output)))
        setattr(attention, HEADLESS, True)
    count = len(kept) or group
    for name, value in [*((name, count) for name in _COUNTS), *((name, count * found.size) for name in _WIDTHS)]:
        if hasattr(attention, name):
            setattr(attention, name, value)
    if hasattr(attention, "has_relative_attention_bias"):
        before = getattr(attention, "heads_kept", range(found.site.heads))
        attention.heads_kept = tuple(before[head] for head in kept) or (0,)
        if not isinstance(attention, _SharedBias):
            attention.__class__ = type(type(attention).__name__, (_SharedBias, type(attention)), {})


def _resize(module: torch.nn.Module) -> None:
    """Set the size attributes of a projection to the shape of its weight."""
    if isinstance(module, torch.nn.Linear):
        module.out_features, module.in_features = module.weight.shape
    elif isinstance(module, Conv1D):
        module.nx, module.nf = module.weight.shape


class NoInput(torch.nn.Module):
    """The input projection of a layer without heads: zeros of the width of one head, because attention cannot have
    width 0.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Zeros for every token."""
        return states.new_zeros(*states.shape[:-1], self.width)


class Constant(torch.nn.Module):
    """The output projection of a layer without heads: its bias."""

    def __init__(self, projection: Any) -> None:
        super().__init__()
        self.width = projection.nf if isinstance(projection, Conv1D) else projection.out_features
        self.bias = projection.bias

    def forward(self, contexts: torch.Tensor) -> torch.Tensor:
        """The bias for every token, or zeros."""
        out = contexts.new_zeros(*contexts.shape[:-1], self.width)
        return out if self.bias is None else torch.add(out, self.bias)


class _SharedBias:
    """T5's attention: the first layer makes a position bias for all heads, which all layers add. Each layer must
    therefore select the bias of the heads that it still has.
    """

    heads_kept: tuple[int, ...]

    def compute_bias(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        whole: torch.Tensor = super().compute_bias(*args, **kwargs)  # type: ignore[misc]
        self.whole_bias = whole
        return whole[:, list(self.heads_kept)]

    def forward(self, *args: Any, position_bias: torch.Tensor | None = None, **kwargs: Any) -> tuple[Any, ...]:
        own = None if position_bias is None else position_bias[:, list(self.heads_kept)]
        output, _, weights = super().forward(*args, position_bias=own, **kwargs)  # type: ignore[misc]
        return output, self.__dict__.pop("whole_bias", position_bias), weights
