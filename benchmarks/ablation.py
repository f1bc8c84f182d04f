"""Ablation of every head in turn, and the importance of all heads at once, against plain passes of the same model.

    python benchmarks/ablation.py [--quick] [--threads 2]

The model is the embedded one, 12 layers of 12 heads, scored on its predictions of masked pieces. The plain form of
ablation is one full pass of the unchanged model and one per head, with the head's part of the input of the output
projection set to 0, by transformers' default attention; it also computes logits of the masked pieces only. Both forms
must give the same losses. The plain form of a forward and backward pass ends at the embeddings and computes no
gradients of weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from common import Row, interleaved, machine, ratio, segments, spread, table
from headscope.encoding.texts import Encoded
from headscope.models.answers import ask, asking_inputs, only, whole_of
from headscope.models.gates import gates_without
from headscope.models.importance import importance
from headscope.models.load import load
from headscope.models.model import Model
from headscope.models.predictions import Predictions
from headscope.models.prefix import ablated

SIZES = ((1, 32), (4, 64), (4, 128))  # texts and tokens of each


def reusing(model: Model, texts: Sequence[Encoded]) -> dict[int, torch.Tensor]:
    """The losses of all predictions of the unchanged model, and without each head."""
    cuts = [{}, *(gates_without(model, [head]) for head in model.layout.ids())]
    asked = ask(model, texts)
    return {number: _losses(asked, logits) for number, logits in ablated(model, texts, cuts, asked)}


def naive(model: Model, texts: Sequence[Encoded]) -> dict[int, torch.Tensor]:
    """The same losses by one full pass each."""
    asked = ask(model, texts)
    inputs = asking_inputs(model, texts, asked)
    found: dict[int, torch.Tensor] = {}
    for number, head in enumerate([None, *model.layout.ids()]):
        size = model.network.config.hidden_size // model.sites[0].heads
        module = model.network.get_submodule(f"encoder.layer.{0 if head is None else head.layer}.attention.output.dense")
        part = slice(0, 0) if head is None else slice(head.head * size, (head.head + 1) * size)
        handle = module.register_forward_pre_hook(partial(_zeroed, part))
        with torch.inference_mode(), only(model, asked) as of:
            found[number] = _losses(asked, of(whole_of(model)(**inputs).logits))
        handle.remove()
    return found


def _losses(asked: Predictions, logits: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits, torch.from_numpy(asked.labels), reduction="none")


def _zeroed(part: slice, module: torch.nn.Module, args: Any) -> tuple[torch.Tensor]:
    contexts = args[0].clone()
    contexts[..., part] = 0
    return (contexts,)


def backward(model: Model, texts: Sequence[Encoded]) -> torch.Tensor:
    """The gradient of the loss of these texts with respect to their embeddings."""
    asked = ask(model, texts)
    leaves: list[torch.Tensor] = []

    def begin(module: torch.nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
        leaves.append(output.requires_grad_())
        return output

    handle = model.network.embeddings.register_forward_hook(begin)
    with only(model, asked) as of:
        loss = asked.loss(of(whole_of(model)(**asking_inputs(model, texts, asked)).logits), "mean")
        (gradient,) = torch.autograd.grad(loss, leaves)
    handle.remove()
    return gradient


def rows(quick: bool = False) -> list[Row]:
    """Both ratios, for texts of several sizes."""
    model = load(device="cpu", head=True)
    found = []
    for count, length in SIZES[: 1 if quick else None]:
        texts = segments(model, count, length)
        found += [_heads(model, texts, 1 if quick else 5), _importance(model, texts, 3 if quick else 15)]
    return found


def _heads(model: Model, texts: Sequence[Encoded], rounds: int) -> Row:
    ours, plain = reusing(model, texts), naive(model, texts)
    apart = max(float((ours[number] - plain[number]).abs().max()) for number in plain)
    if sorted(ours) != sorted(plain) or apart > 1e-4:
        raise AssertionError(f"full passes must give the same losses; the largest difference is {apart:.2g}")
    contestants: dict[str, Callable[[], object]] = {"ours": partial(reusing, model, texts), "naive": partial(naive, model, texts)}
    times = interleaved(contestants, rounds)
    return Row(
        "h",
        f"{model.layout.size} heads in turn / {len(plain)} full passes, {len(texts)} texts of {len(texts[0])} tokens",
        ratio(times, "ours", "naive"),
        most=0.6,
        note=f"{spread(times, 'ours', 'naive')}; {np.median(times['ours']):.2g} s; largest difference of a loss {apart:.1g}",
    )


def _importance(model: Model, texts: Sequence[Encoded], rounds: int) -> Row:
    contestants: dict[str, Callable[[], object]] = {
        "ours": partial(importance, model, texts),
        "plain": partial(backward, model, texts),
    }
    times = interleaved(contestants, rounds)
    return Row(
        "h",
        f"importance of all heads / one forward and backward pass, {len(texts)} texts of {len(texts[0])} tokens",
        ratio(times, "ours", "plain"),
        most=1.3,
        note=f"{spread(times, 'ours', 'plain')}; {1000 * np.median(times['ours']):.3g} ms",
    )


def main() -> None:
    """Read the options, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, one text: a test that it works, not a measurement")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("\n".join([*(f"- {line}" for line in machine(options.threads)), "", table(rows(options.quick)), ""]))


if __name__ == "__main__":
    main()
