"""Capture of attention maps during a forward pass, one layer at a time.

Most models get their attention function from transformers' registry, with the eager function of their model file as the
fallback. While a `tap` is open, the model is set to `eager`, and the function that the registry returns is wrapped: the
model's own eager function runs, so that grouped heads, soft caps, position biases, sinks and windows are right by
construction, and the tap passes each map to a consumer. The name stays `eager`, because some model files choose their
masks by it (DeepSeek-V3.2). Layers whose maps are not wanted run on SDPA. Models that do not use the registry (DeBERTa,
MPNet, XLNet) are run with `output_attentions=True` instead, which holds all layers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from transformers import AttentionInterface, PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from headscope.core.batch import Later
from headscope.core.heads import Site
from headscope.errors import ModelError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    Weights = Float[torch.Tensor, "batch head query key"]
    Visible = Bool[torch.Tensor, "batch query key"]
    # Takes a site's number, its maps, which positions each row could see (None: not known, or all), and a function that
    # returns a way to compute rows of the maps again (None: the maps are held anyway).
    Consumer = Callable[[int, Weights, Visible | None, Callable[[], Later] | None], None]
    # Takes a site's number and the values of its keys, before the maps.
    ValueConsumer = Callable[[int, Float[torch.Tensor, "batch kv_head key d"]], None]

    Exchange = Callable[[int, "Call"], "Call"]  # takes a site's number and one of its calls, returns the call with other maps

    # An attention function: takes the attention module, queries, keys, values, mask and options; returns outputs and
    # maps.
    Attention = Callable[..., tuple[torch.Tensor, torch.Tensor]]
    # Replaces the model's attention calls: takes the attention function of the model, and its arguments.
    Tap = Callable[..., tuple[torch.Tensor, None]]

HEADLESS = "headscope_headless"  # an attribute of attention modules without heads, since all were cut out: they have no maps
_ONLY_EAGER = "headscope_only_eager"  # an attribute of modules whose attention SDPA does not compute
# The open tap, and the attention implementation whose calls it handles.
_tap: ContextVar[tuple[Tap, str] | None] = ContextVar("headscope_tap", default=None)
_change: ContextVar[Callable[[torch.nn.Module, torch.Tensor], torch.Tensor] | None] = ContextVar("headscope_change", default=None)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an attention function: the module that made it, its number of key-value heads, the maps, the mask
    that was applied, a function that computes rows of the maps again from queries and keys, and the values [batch,
    kv_head, key, d].
    """

    module: torch.nn.Module
    kv_heads: int
    weights: torch.Tensor
    mask: torch.Tensor | None
    rows: Later
    value: torch.Tensor | None = None

    def later(self) -> Later:
        """`rows`; an error unless it reproduces the last row of the maps."""
        length = self.weights.shape[2]
        if not torch.allclose(self.rows(length - 1, length), self.weights[:, :, -1:], rtol=1e-2, atol=1e-3):
            raise ModelError(
                f"{type(self.module).__name__} does not give the same attention for some rows as for all",
                "Its maps cannot be computed piece by piece: use a shorter --max-length, a smaller --batch-tokens or fewer --layers",
            )
        return self.rows

    def visible(self) -> torch.Tensor | None:
        """Which columns each row could attend to [batch, query, key], from a boolean mask or one that is added to the
        logits.
        """
        if self.mask is None:
            return None
        batch, _, rows, columns = self.weights.shape
        mask = self.mask[:, 0, :, :columns]
        seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        return seen.expand(batch, rows, columns)  # LayoutLM's mask has one row for all queries, T5's one text for all


class NotFiniteError(ModelError):
    """Attention that is NaN or infinite, so that results computed from it would be NaN, too."""

    def __init__(self, who: str, site: Site, dtype: torch.dtype) -> None:
        half = dtype in (torch.float16, torch.bfloat16)
        super().__init__(
            f"{who}: the attention of layer {site.name} is NaN or infinite",
            "Numbers overflow in half precision: use --dtype float32" if half else "Check the model's config.json and its weights",
        )


class Finite:
    """Records whether maps are finite, and reads the outcome from the device once, at the end: reading it for each
    layer would make a GPU wait.
    """

    def __init__(self, sites: Sequence[Site], dtype: torch.dtype) -> None:
        self._sites, self._dtype = sites, dtype
        self._seen: list[tuple[int, torch.Tensor]] = []  # by site: which texts of the batch are not finite
        self._sums: list[tuple[int, torch.Tensor]] = []  # by site: sums per text that are finite only if all terms are

    def note(self, index: int, weights: Weights, queries: torch.Tensor) -> None:
        """Check a site's maps, except in rows of padding. A row is a softmax: one of its weights is NaN if and only if
        all are.
        """
        self._seen.append((index, (~torch.isfinite(weights[..., 0]) & queries.bool()[:, None]).any(-1).any(-1)))

    def note_all(self, index: int, values: Weights) -> None:
        """Check every number of a site, such as its gradients."""
        self._seen.append((index, ~torch.isfinite(values.flatten(1)).all(1)))

    def note_sums(self, index: int, sums: Float[torch.Tensor, "batch head"]) -> None:
        """Check sums over the rows of a site: a sum is finite only if all its terms are."""
        self._sums.append((index, sums))

    def check(self) -> None:
        """Raise an error that names the first layer that was not finite."""
        if self._sums:
            infinite = ~torch.isfinite(torch.stack([sums.sum(1) for _, sums in self._sums]))
            self._seen += [(index, flags) for (index, _), flags in zip(self._sums, infinite, strict=True)]
            self._sums = []
        if self._seen and (bad := torch.stack([flags for _, flags in self._seen])).any():
            place, text = (int(number) for number in bad.nonzero()[0])
            raise NotFiniteError(f"text {text + 1} of {bad.shape[1]}", self._sites[self._seen[place][0]], self._dtype)


class _Tap:
    """The handler of each attention call of one forward pass: it counts the call and passes its maps to `consume`."""

    def __init__(self, consume: Callable[[int, Call], None], wanted: Callable[[int], bool]) -> None:
        self.consume = consume
        self.wanted = wanted
        self.calls = 0

    def __call__(self, eager: Attention, module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        index, self.calls = self.calls, self.calls + 1
        if not self.wanted(index):
            return unwatched(eager, module, *args, **kwargs)
        output, weights = eager(module, *args, **kwargs)
        rows = partial(_rows, eager, module, args, kwargs)
        self.consume(index, Call(module, args[1].shape[1], weights, mask_of(args, kwargs), rows, args[2]))
        return output, None


def mask_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """The mask among the arguments of an attention function, by position or by name."""
    mask: torch.Tensor | None = args[3] if len(args) > 3 else kwargs.get("attention_mask")
    return mask


def unwatched(eager: Attention, module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
    """The attention of a call whose maps are not wanted."""
    sdpa = plain_scores(kwargs) and not hasattr(module, _ONLY_EAGER)
    output, _ = (ALL_ATTENTION_FUNCTIONS["sdpa"] if sdpa else eager)(module, *args, **kwargs)
    return output, None


def plain_scores(kwargs: Mapping[str, Any]) -> bool:
    """Whether a call has neither soft caps nor sinks, which SDPA ignores without an error."""
    return kwargs.get("softcap") is None and kwargs.get("s_aux") is None


def only_eager(model: PreTrainedModel) -> None:
    """Make every module of a model use its own eager function, even if its maps are not wanted."""
    for module in model.modules():
        setattr(module, _ONLY_EAGER, True)


def attends_by_sdpa(model: PreTrainedModel) -> bool:
    """Whether SDPA computes the attention of all modules, as far as they say."""
    if any(hasattr(module, _ONLY_EAGER) for module in model.modules()):
        return False
    try:
        with implementation(model, "sdpa"):
            return True
    except ValueError:  # transformers refuses it
        return False


def _rows(eager: Attention, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], start: int, stop: int) -> torch.Tensor:
    """Some rows of the maps of a call: the same function for some queries. Values have no effect on maps, so none are
    given.
    """
    query, key, value, *rest = args

    def cut(given: Any) -> Any:
        rows = isinstance(given, torch.Tensor) and given.ndim == 4 and given.shape[2] == query.shape[2] > 1  # masks and position biases
        return given[:, :, start:stop] if rows else given

    named = {name: cut(given) for name, given in kwargs.items()}
    with torch.inference_mode():
        _, weights = eager(module, query[:, :, start:stop], key, value[..., :0], *map(cut, rest), **named)
    return weights


def _attention(eager: Attention, module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The attention function that the registry returns while a tap is open or heads are changed."""
    tap, change = _tap.get(), _change.get()
    if hasattr(module, HEADLESS):
        return unwatched(eager, module, *args, **kwargs)
    output, weights = (unwatched if tap is None else tap[0])(eager, module, *args, **kwargs)
    return output if change is None else change(module, output), weights


_answer = AttentionInterface.get_interface


def _get_interface(self: AttentionInterface, attn_implementation: str, default: Attention) -> Callable[..., Any]:
    """The function that the registry returns, wrapped if in this context a tap is open for that implementation, or
    heads of an eager model are changed.
    """
    function: Attention = _answer(self, attn_implementation, default)
    tap = _tap.get()
    watched = attn_implementation == ("eager" if tap is None else tap[1]) and (tap is not None or _change.get() is not None)
    return partial(_attention, function) if watched else function


# A registered function would need a separate name, which model files do not know. Nothing changes while no tap is open.
AttentionInterface.get_interface = _get_interface


def _with_parts(config: Any) -> Iterator[Any]:
    """A configuration and those of its parts, at any depth."""
    yield config
    for name in config.sub_configs:
        if (part := getattr(config, name, None)) is not None:
            yield from _with_parts(part)


_known_configs: WeakKeyDictionary[PreTrainedModel, list[Any]] = WeakKeyDictionary()


def _configs(model: PreTrainedModel) -> list[Any]:
    """All configurations in a model, each once. They are cached, because a model has many modules."""
    if model not in _known_configs:
        parts = {id(config): config for m in model.modules() if isinstance(m, PreTrainedModel) for config in _with_parts(m.config)}
        _known_configs[model] = list(parts.values())
    return _known_configs[model]


@contextmanager
def implementation(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Use another attention implementation within the context, and restore the model's own afterwards, even after an
    error.
    """
    before = [(config, config._attn_implementation) for config in _configs(model)]
    if all(was == name for _, was in before):
        yield
        return
    try:
        model.set_attn_implementation(name)
        yield
    finally:
        for config, was in before:
            config._attn_implementation_internal = was


@contextmanager
def tapped(model: PreTrainedModel, tap: Tap, name: str = "eager") -> Iterator[None]:
    """Use an attention implementation within the context, with every call made through `tap`."""
    with implementation(model, name):
        token = _tap.set((tap, name))
        try:
            yield
        finally:
            _tap.reset(token)


@contextmanager
def changing(model: PreTrainedModel, change: Callable[[torch.nn.Module, torch.Tensor], torch.Tensor]) -> Iterator[None]:
    """Pass the outputs of the model's heads, [batch, query, head, d], through `change` before the output projection,
    within the context.

    Taps may be open at the same time, and other changes: the change that was entered last is applied first.
    """
    outer = _change.get()
    with implementation(model, "eager"):
        token = _change.set(change if outer is None else lambda module, output: outer(module, change(module, output)))
        try:
            yield
        finally:
            _change.reset(token)


def observe(model: PreTrainedModel, inputs: Mapping[str, torch.Tensor], note: Callable[[], None] = lambda: None) -> tuple[list[Call], Any]:
    """Every attention call of one forward pass, none if the model bypasses the registry, and what the model returns.

    For small inputs: the maps of all layers are held. `note` is called during each call.
    """
    calls: list[Call] = []

    def keep(index: int, call: Call) -> None:
        calls.append(call)
        note()

    with torch.inference_mode(), tapped(model, _Tap(keep, lambda index: True)):
        return calls, model(**inputs, use_cache=False)


class ExpectedCalls:
    """The attention calls that a dry run saw, in order."""

    def __init__(self, model: PreTrainedModel, sites: Sequence[Site]) -> None:
        self._model, self._sites = model, sites
        self._modules = [model.get_submodule(site.module) for site in sites]

    def check(self, index: int, module: torch.nn.Module) -> None:
        """Raise an error if call number `index` of a pass comes from another module than in the dry run."""
        if index >= len(self._sites) or module is not self._modules[index]:
            caller = next((name for name, other in self._model.named_modules() if other is module), None)
            expected = self._sites[index].module if index < len(self._sites) else "no more calls"
            raise ModelError(
                f"attention call {index + 1} came from {caller!r} where the dry run saw {expected!r}",
                "This model chooses its layers by input; such models are not supported",
            )

    def check_number(self, calls: int) -> None:
        """Raise an error if a pass had another number of calls."""
        if calls != len(self._sites):
            raise ModelError(f"{calls} attention calls where the dry run saw {len(self._sites)}: some layers are missing")


def stream(
    model: PreTrainedModel,
    sites: Sequence[Site],
    inputs: Mapping[str, torch.Tensor],
    consume: Consumer,
    wanted: frozenset[int] | None = None,
    values: ValueConsumer | None = None,
    exchange: Exchange | None = None,
) -> None:
    """Run the model once and pass the maps of each wanted site (by number; None: all) to `consume` as they are
    computed, or the maps that `exchange` makes of them. The site's values are passed to `values` first.

    A layer's maps are freed before the next layer's exist, unless the consumer keeps them.
    """
    calls = ExpectedCalls(model, sites)
    visible: dict[int, tuple[torch.Tensor | None, torch.Tensor | None]] = {}

    def take(index: int, call: Call) -> None:
        calls.check(index, call.module)
        call = call if exchange is None else exchange(index, call)
        # Layers that share a mask receive the same tensor.
        if id(call.mask) not in visible:
            visible[id(call.mask)] = (call.visible(), call.mask)
        if values is not None and call.value is not None:
            values(index, call.value)
        consume(index, call.weights, visible[id(call.mask)][0], call.later)

    tap = _Tap(take, lambda index: wanted is None or index in wanted)
    with torch.inference_mode(), tapped(model, tap):
        model(**inputs, use_cache=False)
    calls.check_number(tap.calls)


OUTPUTS = {"encoder": ("attentions", "encoder_attentions"), "decoder": ("attentions", "decoder_attentions"), "cross": ("cross_attentions",)}


def from_outputs(model: PreTrainedModel, inputs: Mapping[str, torch.Tensor]) -> tuple[dict[str, tuple[torch.Tensor, ...]], Any]:
    """The maps that a model returns under eager `output_attentions=True`, by the name of the output, and everything
    that it returns.
    """
    with torch.inference_mode(), implementation(model, "eager"):
        used = {config._attn_implementation for config in (model.config, model.config.get_text_config())} - {"eager"}
        if used:
            raise ModelError(
                f"{type(model).__name__} attends by {used.pop()}, which gives no maps, and cannot be switched",
                'Load it with attn_implementation="eager"',
            )
        result = model(**inputs, output_attentions=True, use_cache=False)
    names = sorted({name for names in OUTPUTS.values() for name in names})
    return {name: maps for name in names if (maps := getattr(result, name, None))}, result
