"""The Jensen-Shannon kernel (part c) against plain numpy in the form of the paper's released code, on the same smoothed maps.

That form (METHODS §6, §15) loops over heads; for each it takes the mean with every other head and the KL divergence of both sides from
it, twice for every pair. It works in the type the maps are stored in: float32, or the float16 of the released files.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from common import LENGTH, Row, interleaved, ratio, segments, spread
from headscope.models.load import load
from headscope.stats import divergence

FEW = 3  # heads of the float16 form that are timed: it takes a minute and a half for all


def reference(maps: NDArray[np.floating], heads: int) -> NDArray[np.float64]:
    """The first `heads` rows of the matrix of divergences, summed over query rows."""
    out = np.zeros((heads, len(maps)))
    for number in range(heads):
        mean = (maps[number] + maps) / 2
        both = _kl(maps[number], mean) + _kl(maps, mean)
        out[number] = both.sum(-1) / 2
    return out


def _kl(p: NDArray[np.floating], q: NDArray[np.floating]) -> NDArray[np.floating]:
    summed: NDArray[np.floating] = (p * np.log(p / q)).sum(-1)
    return summed


def plain(maps: torch.Tensor) -> NDArray[np.float64]:
    """Our form in plain torch."""
    return divergence.jensen_shannon(maps)[0].numpy()


def kernel(maps: torch.Tensor) -> NDArray[np.float64]:
    """The kernel that a run uses."""
    return plain(maps)


def smoothed_maps() -> torch.Tensor:
    """The maps [head, row, key] of one segment by all heads of the embedded model, smoothed as the reference does."""
    model = load(device="cpu")
    layers: list[torch.Tensor] = []
    model.stream(model.inputs(segments(model, 1)), lambda site, weights, *_: layers.append(weights[0].clone()))
    return 0.999 * torch.cat(layers) + 0.001 / LENGTH


def rows(quick: bool = False) -> list[Row]:
    """The kernel against float32 numpy, float16 numpy and plain torch; fails if they do not find the same divergences."""
    maps = smoothed_maps()
    single, half, heads = maps.numpy(), maps.numpy().astype(np.float16), len(maps)
    few = 1 if quick else FEW
    exact = reference(single.astype(np.float64), heads) / LENGTH
    errors = {name: float(np.abs(form(maps) / LENGTH - exact).max()) for name, form in {"kernel": kernel, "plain": plain}.items()}
    errors["numpy"] = float(np.abs(reference(single, heads) / LENGTH - exact).max())
    if max(errors.values()) > 1e-5:
        raise AssertionError(f"the forms must agree to 1e-5 nats; they are off by {errors}")
    off = float(np.abs(reference(half, few) / LENGTH - exact[:few]).max())
    forms = {"kernel": lambda: kernel(maps), "plain": lambda: plain(maps)}
    ours = interleaved(forms, 5 if quick else 15)
    slow = interleaved({**forms, "numpy": lambda: reference(single, heads), "half": lambda: reference(half, few)}, 1 if quick else 3)
    times = {**slow, "half": [heads / few * taken for taken in slow["half"]]}  # every turn of its loop is the same work
    return [
        Row(
            "c",
            f"JS of {heads} heads, {LENGTH} rows and keys: float32 numpy as the paper's code / the kernel",
            ratio(times, "numpy", "kernel"),
            least=40,
            note=f"{spread(times, 'numpy', 'kernel')}; all agree to {max(errors.values()):.0e} nats",
        ),
        Row(
            "c",
            "the same in float16 / the kernel",
            ratio(times, "half", "kernel"),
            note=f"extrapolated from {few} of {heads} heads; float16 is off by {off:.0e} nats",
        ),
        Row("c", "plain torch / the kernel", ratio(ours, "plain", "kernel"), note=spread(ours, "plain", "kernel")),
        Row("c", "the kernel", 1000 * float(np.median(ours["kernel"])), "ms", note="a segment"),
    ]
