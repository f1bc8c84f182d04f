"""The influence of token i on token j at layer n, of several kinds: attention, the norms of two Jacobians (Westera
2021), and others.

A_n(i,j)   the mean over heads of the attention that j pays to i
G_n(i,j)   the norm of the Jacobian of layer n's output at j with respect to its input at i
G*_n(i,j)  the same with respect to the input of the first layer at i: the embeddings, after their normalisation
rollout    the share of input token i in j at layer n, by attention and residuals alone (see `rollout`)
maxflow    the maximum flow from j at layer n down to input token i (see `rollout`)
norms      the norm of what the heads of layer n carry from i to j (see `values`)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from headscope.core.suggest import choose_from
from headscope.encoding.texts import Encoded
from headscope.errors import MeasureError
from headscope.models.capture import implementation
from headscope.models.jacobian import closed, products, values
from headscope.models.jacobian.blocks import Block, read
from headscope.models.jacobian.choices import ALL_KINDS, KINDS, METHODS, MODES, NORMS, Kind, Method, Mode, Norm
from headscope.models.jacobian.layers import Layer, check_again, check_chain, record, running
from headscope.models.jacobian.norms import NormReading
from headscope.models.jacobian.products import Pairs
from headscope.models.jacobian.rollout import maxflow, rollout
from headscope.models.model import Model

if TYPE_CHECKING:
    from jaxtyping import Float

    Sizes = Float[np.ndarray, "layer source target"]
    KindProgress = Callable[[Kind, float], None]  # called with a kind and the share of its work that is done


@dataclass(frozen=True)
class Flow:
    """Matrices [layer, source, target] of one text, at token level, by kind.

    `errors` has the standard errors of sketched values, and None for exact kinds. `method` says for each kind whether
    it is exact or sketched, and `notes` say why.
    """

    values: dict[str, Sizes] = field(default_factory=dict)
    errors: dict[str, Sizes | None] = field(default_factory=dict)
    method: dict[str, Literal["exact", "sketch"]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def flow(
    model: Model,
    text: Encoded | Mapping[str, torch.Tensor],
    kinds: Sequence[Kind] = KINDS,
    norm: Norm = "frobenius",
    method: Method = "auto",
    probes: int = 32,
    seed: int = 0,
    longest: int = 64,
    mode: Mode = "eval",
    pairs: Pairs | None = None,
    progress: KindProgress | None = None,
) -> Flow:
    """A, G and G* of one text, or other kinds (ALL_KINDS). For an encoder-decoder, those of its encoder. The text may
    also be given as inputs of the network: one row of tokens, padding allowed.

    `norm` is the norm of a Jacobian: `frobenius`, `spectral` (its largest singular value), `sum` (the norm of the
    gradient of the sum of the target's features) or `mean` (that of `sum` divided by the number of features). With
    `method="auto"`, G is exact if all layers are known blocks (`layouts.KNOWN`); otherwise the Frobenius norm is
    sketched with `probes` random vectors, as it is for G*. `exact` uses as many vectors as there are features. All
    norms except `frobenius` are exact with every method. With `pairs`, some sources and some targets, G is computed
    only for these targets and G* only for these sources (in a decoder, only up to the last of all these tokens); all
    other values are 0. For a few pairs this is many times faster, and the numbers are the same. `maxflow` is refused
    for texts of more than `longest` tokens: its time grows with about the fourth power of the length. `progress` is
    called after each layer of G and G* with the share of that kind that is done.

    With `mode="train"` dropout is on, as it was for the paper's numbers. The same dropout, drawn from `seed`, applies
    to all kinds, layers and probes. G is then computed by products, for which `norm="sum"` is the cheapest. Memory does
    not grow with the number of probes or pairs of tokens: the numbers held at once are bounded (`targets.HELD`,
    `products.HELD`), apart from the attention of one layer and, for each token, a few matrices of features by features.
    """
    inputs = model.inputs([text]) if isinstance(text, Encoded) else text
    _check(kinds, norm, method, probes, mode)
    sites = [site for site in model.sites if site.kind == model.sites[0].kind]
    found = Flow()
    notes: list[str] = []
    star_notes: list[str] = []
    if {"A", "rollout", "maxflow"} & set(kinds):
        with running(model.network, mode, seed):
            attention = _attention(model, inputs)
        if "A" in kinds:
            _add(found, "A", attention)
        if "rollout" in kinds:
            _add(found, "rollout", rollout(attention))
        if "maxflow" in kinds:
            _add(found, "maxflow", maxflow(attention, longest))
    if "norms" in kinds:
        with running(model.network, mode, seed):
            _add(found, "norms", values.each(model, inputs, values.together))
    if "G" in kinds or "G*" in kinds:
        model.require_plain_weights("flow by gradients")
        with implementation(model.network, "eager"), running(model.network, mode, seed):
            layers = record(model.network, sites, inputs)
            check_again(layers)
            known = [read(layer, site.heads) for layer, site in zip(layers, sites, strict=True)]
            within = _Exact(known, norm, pairs and pairs.targets, _of_kind(progress, "G"))
            beside = within if "G" in kinds and method != "sketch" and within.strange is None else None
            star = None
            if "G*" in kinds:  # first, because G can reuse what a block holds for G*
                star = _from_start(layers, known, norm, method, probes, seed, star_notes, pairs, _of_kind(progress, "G*"), beside)
            if "G" in kinds:
                _add(found, "G", *_within(layers, within, norm, method, probes, seed, notes))
            if star is not None:
                _add(found, "G*", *star)
    return Flow(found.values, found.errors, found.method, (*notes, *star_notes))


def _check(kinds: Sequence[Kind], norm: Norm, method: Method, probes: int, mode: Mode) -> None:
    options = (("norm", norm, NORMS), ("method", method, METHODS), ("mode", mode, MODES))
    for what, given, known in (*(("kind", kind, ALL_KINDS) for kind in kinds), *options):
        if given not in known:
            raise MeasureError(f"{what} {given!r} is unknown", choose_from(given, known))
    if probes < 2:
        raise MeasureError(f"{probes} probes give no standard error", "Use at least 2")


def _of_kind(progress: KindProgress | None, kind: Kind) -> Callable[[float], None]:
    return (lambda share: None) if progress is None else partial(progress, kind)


def _add(found: Flow, kind: Kind, values: torch.Tensor, errors: torch.Tensor | None = None) -> None:
    if not torch.isfinite(values).all():
        raise MeasureError(
            f"{kind} of this text is NaN or infinite", "Use --dtype float32, and check the model's config.json and its weights"
        )
    found.values[kind] = values.double().cpu().numpy()
    found.errors[kind] = None if errors is None else errors.double().cpu().numpy()
    found.method[kind] = "exact" if errors is None else "sketch"


def _attention(model: Model, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    wanted = [number for number, site in enumerate(model.sites) if site.kind == model.sites[0].kind]
    maps: list[torch.Tensor] = []
    model.stream(inputs, lambda site, weights, *_: maps.append(weights[0].double().mean(0).T), frozenset(wanted))
    return torch.stack(maps)


class _Exact:
    """G of known blocks in closed form, layer by layer in any order; nothing if some block is not known."""

    def __init__(self, known: Sequence[Block | str], norm: Norm, targets: Sequence[int] | None, progress: Callable[[float], None]) -> None:
        self.strange = next((block for block in known if isinstance(block, str)), None)
        self.progress = progress
        self._known, self._norm, self._targets = known, norm, targets
        self._sizes: dict[int, torch.Tensor] = {}

    def __call__(self, number: int) -> None:
        """Compute the layer of this number, unless it is computed already."""
        block = self._known[number]
        if isinstance(block, Block) and self.strange is None and number not in self._sizes:
            self._sizes[number] = closed.sizes(block, self._norm, self._targets)
            self.progress(len(self._sizes) / len(self._known))

    def all(self) -> torch.Tensor:
        """G of all layers; missing ones are computed now."""
        for number in range(len(self._known)):
            self(number)
        return torch.stack([self._sizes[number] for number in range(len(self._known))])


def _within(
    layers: Sequence[Layer], exact: _Exact, norm: Norm, method: Method, probes: int, seed: int, notes: list[str]
) -> tuple[torch.Tensor, torch.Tensor | None]:
    if method != "sketch":
        if exact.strange is None:
            return exact.all(), None
        notes.append(f"G: {exact.strange}")
    readings = [NormReading.make(norm, layer.states, _probes(method, probes), seed + number) for number, layer in enumerate(layers)]
    each = products.counted(list(zip(layers, readings, strict=True)), exact.progress)
    values, errors = zip(*(products.within(layer, reading) for layer, reading in each), strict=True)
    if readings[0].exact:
        return torch.stack(values), None
    notes.append(f"G: sketched with {probes} probes per layer")
    return torch.stack(values), torch.stack(errors)


def _from_start(
    layers: Sequence[Layer],
    known: Sequence[Block | str],
    norm: Norm,
    method: Method,
    probes: int,
    seed: int,
    notes: list[str],
    pairs: Pairs | None,
    progress: Callable[[float], None],
    beside: Callable[[int], None] | None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    check_chain(layers)
    reading = NormReading.make(norm, layers[0].states, _probes(method, probes), seed)
    try:
        back = norm in ("sum", "mean")
        if back:
            values, errors = products.backwards(layers, reading, known, progress)
        else:
            values, errors = products.forwards(layers, reading, known, pairs, progress, beside)
    except products.NoProductError as error:  # not every operation supports forward mode
        notes.append(f"G*: {error.problem}; computed backwards")
        values, errors = products.backwards(layers, reading, progress=progress)
    if reading.exact:
        return values, None
    notes.append(f"G*: sketched with {probes} probes")
    return values, errors


def _probes(method: Method, probes: int) -> int | None:
    return None if method == "exact" else probes
