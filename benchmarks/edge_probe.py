"""All cumulative probes of one task trained together on stored states, against training them one by one.

    python benchmarks/edge_probe.py [--quick] [--threads 2]

The model is the embedded one, the task is parts of speech on the sampler. In the one-by-one form, a probe is the one
that the paper's code trains: torch modules that project every token of a text and pool spans afterwards, with torch's
Adam. The model reads a batch again whenever a probe is trained on it, as in the paper's code, or reads all texts once
per probe and keeps their states in memory. All probes start from the same weights and see the same batches, and all
must end with the same weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import torch

from common import Row, interleaved, machine, ratio, spread, table
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.models.hidden import hidden
from headscope.models.load import load
from headscope.models.model import Model
from headscope.studies.edge_probe.feeding import Feeder, Items, Laid, StateRows, items
from headscope.studies.edge_probe.probe import Probes, Shape, cumulative
from headscope.studies.edge_probe.tasks import inside, targets
from headscope.studies.edge_probe.training import EdgeRecipe, train
from headscope.studies.hidden_states import HiddenStates, hidden_states

if TYPE_CHECKING:
    from jaxtyping import Float

CPU = torch.device("cpu")
Weights = dict[str, torch.Tensor]


class Plain(torch.nn.Module):
    """A probe of one span, in plain torch."""

    def __init__(self, first: Weights, layers: int) -> None:
        super().__init__()
        self.mix = torch.nn.Parameter(first["mix"][:layers].clone())
        self.scale = torch.nn.Parameter(first["scale"].clone())
        size, hidden_size = first["project_0"].shape
        self.project = _linear(size, hidden_size, first["project_0"], first["project_0_bias"])
        self.scorer = torch.nn.Parameter(first["scorer_0"].clone())
        self.inner = _linear(hidden_size, hidden_size, first["inner_0"], first["inner_bias"])
        self.norm = torch.nn.LayerNorm(hidden_size)
        self.out = _linear(hidden_size, first["out"].shape[1], first["out"], first["out_bias"])

    def forward(self, states: Sequence[Float[torch.Tensor, "text token d"]], texts: Sequence[Laid]) -> Float[torch.Tensor, "target label"]:
        """The logits of all targets of a batch."""
        weights = self.mix.softmax(0)
        mixed = self.scale * torch.stack([weight * layer for weight, layer in zip(weights, states, strict=False)]).sum(0)
        tokens = self.project(mixed)
        bounds = [(row, text.tokens[start], text.tokens[end - 1] + 1) for row, text in enumerate(texts) for start, end in text.spans[0]]
        width = max(end - start for _, start, end in bounds)
        places = torch.tensor([[row * tokens.shape[1] + min(start + step, end - 1) for step in range(width)] for row, start, end in bounds])
        held = torch.tensor([[start + step < end for step in range(width)] for _, start, end in bounds])
        spans = tokens.flatten(0, 1)[places]
        shares = (spans @ self.scorer).masked_fill(~held, -torch.inf).softmax(-1)
        logits: torch.Tensor = self.out(self.norm(self.inner((shares[..., None] * spans).sum(1)).tanh()))
        return logits


def _linear(inputs: int, outputs: int, weight: torch.Tensor, bias: torch.Tensor) -> torch.nn.Linear:
    made = torch.nn.Linear(inputs, outputs)
    with torch.no_grad():
        made.weight.copy_(weight.T)
        made.bias.copy_(bias)
    return made


def together(model: Model, texts: Sequence[Encoded], own: Items, recipe: EdgeRecipe) -> Probes:
    """Train all probes, with one pass of the model and one training."""
    with TemporaryDirectory() as folder:
        states = hidden_states(model, texts, Path(folder), dtype="float32")
        probes = _probes(states, own)
        feeder = Feeder(StateRows(states, CPU), own, [own.labels], torch.float32)
        variant = torch.zeros(len(probes.seen), dtype=torch.int64)
        rising = iter(range(recipe.checks))  # the last state counts as the best, as in the other form
        train(probes, feeder, variant, lambda: np.full((1, len(probes.seen)), float(next(rising))), recipe)
    return probes


def one_by_one(model: Model, texts: Sequence[Encoded], own: Items, recipe: EdgeRecipe, keep: bool) -> list[Plain]:
    """Train each probe separately. The model reads the texts for each batch, or, with `keep`, once for each probe."""
    blank = HiddenStates(tuple(range(len(model.sites) + 1)), model.network.config.hidden_size, (1,), np.zeros(0))
    first = {name: value[0, 0].detach() for name, value in _probes(blank, own).parameters.items()}
    order = Feeder(StateRows(blank, CPU), own, [own.labels], torch.float32)
    found = []
    for layers in range(1, len(blank.layers) + 1):
        kept = _read_once(model, texts, layers) if keep else {}
        probe = Plain(first, layers)
        adam = torch.optim.Adam(probe.parameters(), lr=recipe.rate)
        for epoch in range(recipe.checks):
            for batch in order.shuffled(0, epoch, recipe.batch):
                own_texts = [texts[text.text] for text in batch]
                states = _padded([kept[text.text] for text in batch]) if keep else _states(model, own_texts, layers)
                labels = torch.from_numpy(own.labels[np.concatenate([text.targets for text in batch])]).float()
                order_of = torch.cat([torch.from_numpy(part) for part in _offsets(batch)])
                logits = probe(states, batch)[order_of]
                adam.zero_grad()
                torch.nn.functional.binary_cross_entropy_with_logits(logits, labels).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(probe.parameters(), recipe.clip)
                adam.step()
        found.append(probe)
    return found


def _offsets(batch: Sequence[Laid]) -> list[np.ndarray]:
    """For each target, the place of its span among all spans of the batch."""
    starts = np.cumsum([0, *(len(text.spans[0]) for text in batch)])
    return [start + text.of[0] for start, text in zip(starts, batch, strict=False)]


def _states(model: Model, texts: Sequence[Encoded], layers: int) -> list[torch.Tensor]:
    return [state.clone() for state in hidden(model, texts)[:layers]]


def _read_once(model: Model, texts: Sequence[Encoded], layers: int) -> dict[int, list[torch.Tensor]]:
    """The states of each text by its number, computed in batches of similar length."""
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    found = {}
    for start in range(0, len(order), 32):
        some = order[start : start + 32]
        states = _states(model, [texts[number] for number in some], layers)
        found.update({number: [layer[row : row + 1, : len(texts[number])] for layer in states] for row, number in enumerate(some)})
    return found


def _padded(texts: Sequence[list[torch.Tensor]]) -> list[torch.Tensor]:
    layers = range(len(texts[0]))
    return [torch.nn.utils.rnn.pad_sequence([text[layer][0] for text in texts], batch_first=True) for layer in layers]


def _probes(states: HiddenStates, own: Items) -> Probes:
    shape = Shape(len(states.layers), states.size, own.slots, len(own.names))
    return Probes(shape, cumulative(shape.layers), [0], CPU)


def apart(probes: Probes, plain: Sequence[Plain]) -> float:
    """The largest difference of a weight."""
    found = 0.0
    for number, other in enumerate(plain):
        pairs = [(probes.parameters["out"][0, number], other.out.weight.T), (probes.parameters["mix"][0, number, : number + 1], other.mix)]
        found = max(found, *(float((one - two).detach().abs().max()) for one, two in pairs))
    return found


def rows(quick: bool = False) -> list[Row]:
    """Both ratios."""
    model = load(device="cpu")
    texts: list[Encoded] = []
    edges = []
    for document in read("sampler"):
        for text in Encoder(model.tokenizer).texts([document], Tally()):
            texts.append(text)
            edges.append(inside(targets(document, "pos"), text.annotation.positions))
    count, epochs = (16, 1) if quick else (96, 4)
    own = items("pos", texts[:count], edges[:count])
    recipe = EdgeRecipe(rate=1e-3, mix_rate=1.0, batch=32, dropout=0.0, checks=epochs, stop_after=99, halve_after=99)
    work = (model, texts[:count], own, recipe)
    difference = max(apart(together(*work), one_by_one(*work, keep)) for keep in (True, False))
    if difference > 1e-3:
        raise AssertionError(f"probes trained together and one by one must have equal weights; the largest difference is {difference:.2g}")
    contestants: dict[str, Callable[[], object]] = {
        "together": partial(together, *work),
        "kept": partial(one_by_one, *work, True),
        "read again": partial(one_by_one, *work, False),
    }
    times = interleaved(contestants, 1 if quick else 3)
    said = f"13 probes, {len(own):,} targets, {epochs} epochs"
    return [
        Row(
            "i",
            f"one by one / together, {said}; {what}",
            ratio(times, name, "together"),
            least=bar,
            note=f"{spread(times, name, 'together')}",
        )
        for name, what, bar in (
            ("read again", "the model reads each batch again", 5.0),
            ("kept", "the model reads all texts once per probe", None),
        )
    ] + [Row("i", f"together, {said}", float(np.median(times["together"])), "s", note=f"largest difference of a weight {difference:.1g}")]


def main() -> None:
    """Read the options, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few texts, one round: a test that it works, not a measurement")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("\n".join([*(f"- {line}" for line in machine(options.threads)), "", table(rows(options.quick)), ""]))


if __name__ == "__main__":
    main()
