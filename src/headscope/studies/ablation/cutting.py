"""Heads cut out of a model for good: which ones, how much smaller and faster it is, and what it loses."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.encoding.texts import Encoded
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.table import Table

if TYPE_CHECKING:
    from jaxtyping import Float64

SIZES = (1, 4, 16, 64)


def share(text: str) -> float:
    """`60%` or `0.6` as a share of the heads."""
    number = text.removesuffix("%")
    try:
        value = float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise RunError(f"{text!r} is no share of the heads", "Write 60% or 0.6") from None
    if not 0 <= value <= 1:
        raise RunError(f"{text} of the heads cannot be kept", "Write a share from 0% to 100%")
    return value


def least(values: Float64[np.ndarray, "head"], keep: float) -> list[int]:
    """The heads to go so that a share is kept, rounded up: those of the smallest values, of equals the lower layer and head first."""
    gone = len(values) - int(np.ceil(keep * len(values) - 1e-9))
    return [int(place) for place in np.argsort(np.nan_to_num(values, nan=np.inf), kind="stable")[:gone]]


def sizes(whole: Model, smaller: Model) -> Table:
    """How many heads, weights and bytes there are before and after."""
    models = (whole, smaller)
    return Table.of(
        {
            "model": ["whole", "pruned"],
            "heads": [model.layout.size for model in models],
            "weights": [_weights(model) for model in models],
            "megabytes": [_weights(model, True) / 1e6 for model in models],
        }
    )


def _weights(model: Model, in_bytes: bool = False) -> int:
    return sum(one.numel() * (one.element_size() if in_bytes else 1) for one in (model.whole or model.network).parameters())


def speeds(whole: Model, smaller: Model, texts: Sequence[Encoded], batches: Sequence[int] = SIZES, rounds: int = 5) -> Table:
    """Texts a second by batch size, of both models in turn on the same texts, the median of the rounds, and the ratio."""
    rows = []
    for size in batches:
        batch = list(islice(cycle(texts), size))
        taken: tuple[list[float], list[float]] = ([], [])
        for turn in range(rounds + 1):
            for model, times in zip((whole, smaller), taken, strict=True):
                inputs = model.inputs(batch)
                began = time.perf_counter()
                with torch.inference_mode():
                    (model.whole or model.network)(**inputs, use_cache=False)
                if model.device.type == "cuda":
                    torch.cuda.synchronize()
                if turn:  # the first is for warming up
                    times.append(time.perf_counter() - began)
        before, after = (size / float(np.median(times)) for times in taken)
        rows.append({"batch": size, "whole": before, "pruned": after, "faster": after / before - 1})
    return Table.of({name: [row[name] for row in rows] for name in rows[0]})
