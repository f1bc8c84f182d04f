"""One epoch of training the attention-only probe in batches, against one sentence per step as in the reference.

    python benchmarks/attention_probe.py TREEBANK DEV [--sentences 8000] [--threads 1] [--quick]

The model is the embedded one. Its maps are computed once and kept, as in the released code, so that only training is
timed, which includes reading the maps. The plain form takes one sentence per step: maps [head, from, to], as a model
gives them and as they are stored there, are concatenated with their transposes; the root's column is put before the
words; 288 products are added up; the loss is the sum of the cross-entropies; Adam at .002 takes the sentences in the
order of the file. Ours is the recommended recipe with a single epoch. Both are scored on DEV, where ours may be at most
.5 points worse: one epoch of a few thousand sentences is too few steps for batches. The plain form trains several seeds
one after the other, ours trains them together.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from common import Row, interleaved, machine, ratio, spread, table
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.models.load import load
from headscope.models.model import Model
from headscope.studies.attention_probe.maps import UNSCORED, Maps, ParsedSentence, Store
from headscope.studies.attention_probe.probes import AttentionProbe
from headscope.studies.attention_probe.tables import punctuation
from headscope.studies.attention_probe.training import AttentionRecipe, SentenceMaps, in_order, train

CACHE = 8 << 30


class Plain(torch.nn.Module):
    """The probe as in the paper, with weights of 288 maps and two numbers for the root."""

    def __init__(self, maps: int) -> None:
        super().__init__()
        limit = math.sqrt(6 / (2 * maps))
        self.weight = torch.nn.Parameter(torch.empty(maps).uniform_(-limit, limit, generator=torch.Generator().manual_seed(0)))
        self.start, self.end = torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.ones(()))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Scores [word, 1 + word] of a sentence's maps [head, from, to], whose first two places are start and end."""
        both = torch.cat([maps, maps.transpose(1, 2)])
        words = both[:, 2:]
        root = self.start * words[:, :, :1] + self.end * words[:, :, 1:2]
        return torch.einsum("kij,k->ij", torch.cat([root, words[:, :, 2:]], 2), self.weight)


def one_by_one(given: SentenceMaps, kept: Sequence[torch.Tensor]) -> Plain:
    """Train the probe with the reference's recipe, on maps [head, from, to]."""
    probe = Plain(2 * heads_of(given))
    optimiser = torch.optim.Adam(probe.parameters(), lr=0.002)
    for maps, tree in zip(kept, given.trees, strict=True):
        scored = tree.gold != UNSCORED
        optimiser.zero_grad()
        scores = probe(maps)
        loss = torch.nn.functional.cross_entropy(scores[scored], tree.gold[scored], reduction="sum")
        torch.autograd.backward(loss)
        optimiser.step()
    return probe


def in_batches(given: SentenceMaps, seeds: int = 1) -> AttentionProbe:
    """Train the probe with our recipe."""
    probe = AttentionProbe(range(seeds), 2 * heads_of(given))
    train({"attention": probe}, given, AttentionRecipe(rate=None, decay="linear", epochs=1, batch=32, order="shuffled"))
    return probe


def heads_of(given: SentenceMaps) -> int:
    """The number of heads in the maps."""
    assert given.store is not None
    return len(given.store.maps.heads)


@torch.no_grad()
def uas(probe: Plain | AttentionProbe, given: SentenceMaps, texts: Sequence[Encoded]) -> float:
    """The share of governors found, in per cent, without punctuation."""
    assert given.store is not None
    right = count = 0
    for _, places, batch in given.batches(in_order(given), 1):
        found = probe.found(batch)[..., 0] if isinstance(probe, AttentionProbe) else None
        for row, place in enumerate(places):
            tree = given.trees[place]
            own = probe(given.store.get([place])[0].permute(2, 0, 1)).argmax(-1) if found is None else found[row, : len(tree)]
            counts = torch.tensor([not punctuation(word.relation or "") for word in texts[place].words]) & (tree.gold != UNSCORED)
            right += int((own == tree.gold)[counts].sum())
            count += int(counts.sum())
    return 100 * right / count


def sentences(model: Model, path: str, most: int | None) -> tuple[SentenceMaps, list[Encoded]]:
    """The sentences of a treebank, with their maps already computed."""
    texts = list(Encoder(model.tokenizer).texts(read(path), Tally()))[:most]
    store = Store(Maps(model), texts, CACHE)
    if not store.keeps:
        raise SystemExit(f"the maps take {store.bytes / 2**30:.1f} GiB: use fewer --sentences")
    given = SentenceMaps(
        [text.id for text in texts], [ParsedSentence.of(text, [0] * len(text.words)) for text in texts], store, model.device
    )
    for _ in store.ahead(in_order(given)):
        pass
    return given, texts


def rows(learned: str, tried: str, most: int | None, rounds: int) -> list[Row]:
    """The ratio of times, for one seed and for three, and the scores of both."""
    model = load(device="cpu")
    given, _ = sentences(model, learned, most)
    held, texts = sentences(model, tried, most)
    assert given.store is not None
    assert held.store is not None
    kept = [maps.permute(2, 0, 1).contiguous() for maps in given.store.get(range(len(given.trees)))]
    ours, plain = uas(in_batches(given), held, texts), uas(one_by_one(given, kept), held, texts)
    if ours < plain - 0.5:
        raise SystemExit(f"UAS is {ours:.1f} % in batches and {plain:.1f} % one by one: use more --sentences, or all")
    work: dict[str, Callable[[], object]] = {
        "1": lambda: in_batches(given),
        "3": lambda: in_batches(given, 3),
        "plain": lambda: one_by_one(given, kept),
    }
    times = interleaved(work, rounds)
    times = {**times, "plain, 3 seeds": [3 * taken for taken in times["plain"]]}
    given.store.close()
    held.store.close()
    found = []
    for seeds, other in (("1", "plain"), ("3", "plain, 3 seeds")):
        spent = f"{min(times[seeds]):.2g} s and {min(times[other]):.2g} s"
        found.append(
            Row(
                "i",
                f"one sentence per step / batches of 32, {len(given.trees):,} sentences, one epoch, seeds: {seeds}",
                ratio(times, other, seeds),
                least=10,
                note=f"{spread(times, other, seeds)}; {spent}; UAS {ours:.1f} and {plain:.1f}",
            )
        )
    return found


def main() -> None:
    """Read the options, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("learned", type=Path, help="treebank to train on")
    parser.add_argument("tried", type=Path, help="treebank to score on")
    parser.add_argument("--sentences", type=int, help="the most sentences of each treebank")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--quick", action="store_true", help="one round over 200 sentences: a test that it works, not a measurement")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found = rows(str(options.learned), str(options.tried), 200 if options.quick else options.sentences, 1 if options.quick else 3)
    print("\n".join([*(f"- {line}" for line in machine(options.threads)), "", table(found), ""]))


if __name__ == "__main__":
    main()
