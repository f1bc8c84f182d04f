"""Influence between tokens: exact sizes of a layer's Jacobian against autograd's, and the error of sketches.

    python benchmarks/flow.py [--quick] [--threads 2]

The layers are those of the embedded model, on one sentence of 24 words and on a text of 64 tokens. Autograd builds the
whole Jacobian of a layer by `torch.func.jacrev`, vectorised in chunks of the fastest of several sizes, and takes its
norms. Both must give the same numbers. For n tokens of d features autograd needs about 24n²d³ flop, the closed form
about 14nd³.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

from common import Row, interleaved, machine, ratio, seconds, segments, spread, table
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.models.capture import implementation
from headscope.models.jacobian import blocks, closed, products
from headscope.models.jacobian.flow import flow
from headscope.models.jacobian.layers import Layer, record
from headscope.models.jacobian.norms import NormReading
from headscope.models.load import load
from headscope.models.model import Model

WORDS, LONG, CHUNKS = 24, 64, (32, 64, 256)


def sentence(model: Model) -> Encoded:
    """The first sentence of the sampler with 24 words."""
    return next(text for text in Encoder(model.tokenizer).texts(read("sampler"), Tally()) if len(text.words) == WORDS)


def exact(layer: Layer, heads: int) -> np.ndarray:
    """Our sizes of a layer's Jacobian [source, target]. Reading the block and checking it are included."""
    block = blocks.read(layer, heads)
    if isinstance(block, str):
        raise AssertionError(block)
    return closed.sizes(block, "frobenius").numpy()


def autograd(layer: Layer, chunk: int) -> np.ndarray:
    """The same sizes from the whole Jacobian."""
    whole: torch.Tensor = torch.func.jacrev(layer.function, chunk_size=chunk)(layer.states)  # [target, out, source, in]
    return whole.square().sum((1, 3)).sqrt().T.numpy()


def rows(quick: bool = False) -> list[Row]:
    """Exact sizes against autograd, for the sentence and for a longer text; the time of one text; the errors of
    sketches.
    """
    model = load(device="cpu")
    text = sentence(model)
    found = [_against(model, text, 1 if quick else 3, 100, CHUNKS)]
    if not quick:
        found.append(_against(model, segments(model, 1, LONG)[0], 1, None, (64,)))
    with implementation(model.network, "eager"):
        layers = record(model.network, model.sites, model.inputs([text]))
        heads = model.sites[0].heads
        middle = layers[len(layers) // 2]
        known = [blocks.read(layer, heads) for layer in layers]
        reading = NormReading.make("frobenius", middle.states, 32)
        every = seconds(partial(flow, model, text, ("G",)))
        ours = seconds(partial(products.forwards, layers, reading, known))
        plain = seconds(partial(products.forwards, layers, reading))
        return [
            *found,
            Row("g", f"G of all {len(layers)} layers, exact", every * 1000, "ms"),
            Row("g", "G* of all layers, 32 probes", ours * 1000, "ms", note=f"{plain / ours:.2g} times as long by torch's forward mode"),
            *(_sketch(middle, heads, probes) for probes in (8, 32, 128)),
        ]


def _against(model: Model, text: Encoded, rounds: int, least: float | None, chunks: Sequence[int]) -> Row:
    """The times of both forms for one layer, in alternating order."""
    heads = model.sites[0].heads
    with implementation(model.network, "eager"):
        layers = record(model.network, model.sites, model.inputs([text]))
        layer = layers[len(layers) // 2]
        chunk = min(chunks, key=lambda size: seconds(partial(autograd, layer, size)))
        apart = float(np.abs(exact(layer, heads) / autograd(layer, chunk) - 1).max())
        if apart > 1e-3:
            raise AssertionError(f"autograd must give the same sizes; the largest relative difference is {apart:.2g}")
        contestants: dict[str, Callable[[], object]] = {
            "ours": partial(exact, layer, heads),
            "autograd": partial(autograd, layer, chunk),
        }
        times = interleaved(contestants, rounds)
    return Row(
        "g",
        f"the whole Jacobian by autograd / exact sizes, one layer, {len(text)} tokens of {layer.states.shape[1]} features",
        ratio(times, "autograd", "ours"),
        least=least,
        note=f"{spread(times, 'autograd', 'ours')}; jacrev in chunks of {chunk}; largest relative difference {apart:.1g}",
    )


def _sketch(layer: Layer, heads: int, probes: int) -> Row:
    """The error of a sketch of a layer."""
    truth = exact(layer, heads)
    reading = NormReading.make("frobenius", layer.states, probes)
    values, errors = (found.numpy() for found in products.within(layer, reading))
    error = float(np.sqrt(np.mean((values / truth - 1) ** 2)))
    within = float(np.mean(np.abs(values - truth) < 2 * errors))
    return Row(
        "g", f"a sketch of {probes} probes, error of a size (root mean square)", 100 * error, "%", note=f"{within:.0%} within two errors"
    )


def main() -> None:
    """Read the options, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, one sentence: a test that it works, not a measurement")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("\n".join([*(f"- {line}" for line in machine(options.threads)), "", table(rows(options.quick)), ""]))


if __name__ == "__main__":
    main()
