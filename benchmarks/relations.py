"""What scoring heads as parsers costs, as ratios of times taken in one run: `python benchmarks/relations.py [CORPUS]`.

Over the same batches of sentences with the embedded model (EWT dev if HEADSCOPE_DATA is set, else the sampler):
- bare: the eager forward pass and nothing else;
- ours: the forward pass and `relations`: all heads, both directions, every relation, seven offsets, the permutation control, counts by
  group of documents;
- naive: the scoring alone as the paper's notebook does it, a loop over heads and words, on the first sentences, in time a sentence.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import headscope as hs
from headscope.core.batch import MapBatch
from headscope.core.tally import Tally
from headscope.corpora.permuted import Trees
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.words import WordGroups, word_map
from headscope.measures import make
from headscope.models.capture import implementation
from headscope.models.model import Model
from headscope.runs.plan import Plan
from headscope.runs.shard import BatchView, ShardRunner
from headscope.stats.bootstrap import poisson_weights

BATCH_TOKENS = 2048


def seconds(work: Callable[[], object]) -> float:
    """How long `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def bare(model: Model, texts: list[Encoded]) -> None:
    """The forward pass alone."""
    with torch.inference_mode(), implementation(model.network, "eager"):
        for batch in batches(texts, BATCH_TOKENS):
            model.network(**model.inputs(batch), use_cache=False)


def word_maps(model: Model, text: Encoded) -> np.ndarray:
    """The word-level maps [layer, head, word, word] of one sentence, without its special tokens."""
    groups = WordGroups.build([text], model.device)
    maps: list[np.ndarray] = []
    model.stream(
        model.inputs([text]), lambda site, weights, visible: maps.append(word_map(weights, groups, groups)[0].numpy()), frozenset(range(12))
    )
    return np.stack(maps)[:, :, 1:-1, 1:-1]


def naive(texts: list[Encoded], maps: list[np.ndarray]) -> Counter[tuple[str, str, int, int, int]]:
    """Right answers by document, relation, direction, layer and head: a loop over heads, and over words."""
    right: Counter[tuple[str, str, int, int, int]] = Counter()
    for text, a in zip(texts, maps, strict=True):
        for layer in range(a.shape[0]):
            for head in range(a.shape[1]):
                for direction in (0, 1):
                    m = np.array(a[layer, head].T if direction else a[layer, head])
                    np.fill_diagonal(m, -1)
                    predicted = m.argmax(-1)
                    for word, pick in zip(text.words, predicted, strict=True):
                        if word.head and word.relation:
                            right[text.document, word.relation, direction, layer, head] += int(pick == word.head - 1)
    return right


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", help="a treebank")
    parser.add_argument("--sentences", type=int, default=600, help="sentences to time")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = os.environ.get("HEADSCOPE_DATA")
    corpus = options.corpus or (str(Path(data) / "ud" / "en_ewt-ud-dev.conllu.xz") if data else "sampler")
    model = hs.load(device="cpu")
    encoder = Encoder(model.tokenizer, trees=Trees(hs.read(corpus)))
    texts = list(encoder.texts(hs.read(corpus), Tally()))[: options.sentences]
    print(f"{len(texts)} sentences of {Path(corpus).name}, {options.threads} threads, torch {torch.__version__}")
    measure = make("relations")
    plan = Plan.make([measure], model.sites)
    runner = ShardRunner(model, plan, batch_tokens=BATCH_TOKENS)

    few = sorted((text for text in texts if len(text.words) > 1), key=len)[10 : -10 : max(1, len(texts) // 100)]  # short and long
    maps = [word_maps(model, text) for text in few]
    found = runner(few)["relations"]
    expected: Counter[tuple[str, int, int, int]] = Counter()
    for (_, relation, direction, layer, head), n in naive(few, maps).items():
        expected[relation, direction, layer, head] += n
    for (relation, direction, layer, head), n in expected.items():
        assert found[f"right/{relation}"].sum(0)[direction, layer * 12 + head] == n, "the naive form must find the same counts"

    times: dict[str, list[float]] = {"bare": [], "ours": []}
    for _ in range(options.repeats):  # interleaved, so that a busy moment hits both
        times["bare"].append(seconds(lambda: bare(model, texts)))
        times["ours"].append(seconds(lambda: runner(texts)))
    middle = {name: statistics.median(values) for name, values in times.items()}
    for name, value in middle.items():
        print(f"{name:>6}  {1000 * value / len(texts):7.2f} ms a sentence   (of {', '.join(f'{v:.2f}' for v in times[name])} s)")
    print(f"ours / bare  {middle['ours'] / middle['bare']:.3f}   wanted: at most 1.35")

    batch_maps = [maps for batch in batches(few, BATCH_TOKENS) for maps in _batched(model, batch, plan)]  # the same word maps
    scorer = make("relations", {"control": "none"})  # the naive form has no control either
    state = scorer.start(plan.layout, 0)

    def score() -> None:
        for maps in batch_maps:
            maps.shared.clear()  # what depends on the texts alone is part of the work
        for maps in batch_maps:
            scorer.update(state, maps)

    score()
    ours = statistics.median(seconds(score) for _ in range(options.repeats))
    plain = statistics.median(seconds(lambda: naive(few, maps)) for _ in range(3))
    print(f"scoring alone: naive {1000 * plain / len(few):.1f}, ours {1000 * ours / len(few):.2f} ms a sentence")
    print(f"naive / ours  {plain / ours:.0f}   wanted: at least 20")


def _batched(model: Model, texts: list[Encoded], plan: Plan) -> list[MapBatch]:
    view = BatchView(texts, "mean", poisson_weights([text.document for text in texts], 0))
    found: list[MapBatch] = []
    model.stream(
        model.inputs(texts),
        lambda site, weights, visible: found.append(view.words(view.tokens(plan, site, weights.clone(), visible))),
        frozenset(range(len(model.sites))),
    )
    return found


if __name__ == "__main__":
    main()
