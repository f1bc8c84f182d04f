"""How much smaller and faster a model is that heads were cut out of."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np
import torch

from headscope.encoding.texts import Encoded
from headscope.models.model import Model
from headscope.results.table import Table

SIZES = (1, 4, 16, 64)


def size_table(whole: Model, smaller: Model) -> Table:
    """How many heads, weights and bytes there are before and after: one row per model."""
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
    return sum(weight.numel() * (weight.element_size() if in_bytes else 1) for weight in (model.whole or model.network).parameters())


def speed_table(whole: Model, smaller: Model, texts: Sequence[Encoded], batches: Sequence[int] = SIZES, rounds: int = 5) -> Table:
    """Texts per second of both models on the same texts, the median over the rounds, and the ratio: one row per
    batch size.
    """
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
    return Table.from_rows(rows)
