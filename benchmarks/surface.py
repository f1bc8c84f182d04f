"""The cost of measures relative to the bare eager forward pass (parts a and b), over segments of 128 tokens with the
embedded model.

They are compared with the same numbers computed plainly: `output_attentions=True`, every map to numpy, vectorised
statistics, no intervals.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy as np
import torch

from common import BATCH_TOKENS, LENGTH, SURFACE, Row, bare, interleaved, ratio, runner, segments, spread
from headscope.core.batch import CLS, SEP
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded
from headscope.measures import DEFAULT
from headscope.models.capture import implementation
from headscope.models.load import load
from headscope.models.model import Model


def naive(model: Model, texts: list[Encoded]) -> np.ndarray:
    """The numbers in plain numpy, one text after the other, all heads at once."""
    sums = []
    with torch.inference_mode(), implementation(model.network, "eager"):
        for batch in batches(texts, BATCH_TOKENS):
            maps = np.stack([layer.numpy() for layer in model.network(**model.inputs(batch), output_attentions=True).attentions], 1)
            for text, a in zip(batch, maps, strict=True):
                n = len(text)
                roles, pieces = np.array(text.roles), np.array(text.pieces)
                cls, sep, punct = roles == CLS, roles == SEP, np.isin(pieces, [".", ","])
                entropy = -(a * np.log(np.where(a > 0, a, 1))).sum(-1)
                values = [np.diagonal(a, offset, -2, -1).sum(-1) / n for offset in (-2, -1, 0, 1, 2)]
                values += [a[..., group].sum((-1, -2)) / n for group in (cls, sep, punct)]
                values += [a[..., sep, :][..., sep].sum((-1, -2)) / sep.sum(), a[..., ~sep, :][..., sep].sum((-1, -2)) / (~sep).sum()]
                values += [entropy.mean(-1), entropy[..., 0], a.max(-1).mean(-1)]
                sums.append(np.stack(values))
    return np.asarray(np.mean(sums, axis=0))


def rows(quick: bool = False) -> list[Row]:
    """All measures together, each alone, the three surface measures, and these against plain numpy."""
    model = load(device="cpu")
    texts = segments(model, 32 if quick else 64)
    three = runner(model, DEFAULT)
    table = three.plan.measures[2].tables(three(texts)["entropy"], three.plan.layout)["entropy"]
    if not np.allclose(np.asarray(table["value"])[: three.plan.layout.size], naive(model, texts)[10].ravel(), atol=1e-5):
        raise AssertionError("the plain form must give the same numbers")
    sets = {"all": SURFACE, "three": DEFAULT, **{name: (name,) for name in SURFACE}}
    contestants: dict[str, Callable[[], object]] = {"bare": lambda: bare(model, texts), "naive": lambda: naive(model, texts)}
    for label, names in sets.items():
        run = runner(model, names)
        contestants[label] = lambda run=run: run(texts)  # type: ignore[misc]
    times = interleaved(contestants, 3 if quick else 5)
    once = 1000 * statistics.median(times["bare"]) / len(texts)
    beside = f"the bare eager forward pass, segments of {LENGTH} tokens"
    found = [Row("a", f"{', '.join(SURFACE)} together / {beside}", ratio(times, "all", "bare"), note=spread(times, "all", "bare"))]
    found += [Row("b", f"{name} / the bare pass", ratio(times, name, "bare"), note=spread(times, name, "bare")) for name in SURFACE]
    adds = statistics.median(
        (plain - alone) / (ours - alone) for plain, ours, alone in zip(times["naive"], times["three"], times["bare"], strict=True)
    )
    return [
        *found,
        Row("b", f"{', '.join(DEFAULT)} / the bare pass", ratio(times, "three", "bare"), most=1.25, note=spread(times, "three", "bare")),
        Row(
            "b",
            "the same in plain numpy / ours",
            ratio(times, "naive", "three"),
            least=4,
            note="with `output_attentions=True`, no intervals",
        ),
        Row("b", "what they add to the bare pass, plain numpy / ours", adds),
        Row(
            "b",
            "the bare pass",
            once,
            "ms",
            note=f"per segment; medians of {len(times['bare'])} interleaved rounds of {len(texts)} segments",
        ),
    ]
