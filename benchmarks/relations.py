"""The cost of scoring heads as parsers, sentence by sentence (part b), with the embedded model.

The treebank is EWT dev if HEADSCOPE_DATA names a folder that has it, else the sampler. The scoring alone is compared
with a loop over heads and words, as in the paper's notebook.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

from common import BATCH_TOKENS, Row, bare, interleaved, ratio, runner, seconds, segments, spread
from headscope.core.batch import MapBatch
from headscope.core.state import State
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.corpora.permuted import Trees
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.words import WordGroups, word_map
from headscope.engine.accumulate import BatchView
from headscope.engine.plan import Plan
from headscope.measures import make
from headscope.models.load import load
from headscope.models.model import Model
from headscope.stats.bootstrap import poisson_weights


def word_maps(model: Model, text: Encoded) -> np.ndarray:
    """The word-level maps [layer, head, word, word] of one sentence, without its special tokens."""
    groups = WordGroups.build([text], model.device)
    maps: list[np.ndarray] = []
    model.stream(model.inputs([text]), lambda site, weights, *_: maps.append(word_map(weights, groups, groups)[0].numpy()))
    return np.stack(maps)[:, :, 1:-1, 1:-1]


def naive(texts: list[Encoded], maps: list[np.ndarray]) -> Counter[tuple[str, str, int, int, int]]:
    """Right answers by document, relation, direction, layer and head, from a loop over heads and words."""
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


def rows(quick: bool = False) -> list[Row]:
    """Relations against the bare pass over sentences, and the scoring alone against the loop."""
    data = os.environ.get("HEADSCOPE_DATA")
    corpus = str(Path(data) / "ud" / "en_ewt-ud-dev.conllu.xz") if data else "sampler"
    model = load(device="cpu")
    encoder = Encoder(model.tokenizer, trees=Trees(read(corpus)))
    texts = list(encoder.texts(read(corpus), Tally()))[: 100 if quick else 300]
    run = runner(model, ["relations"])
    times = interleaved({"bare": lambda: bare(model, texts), "ours": lambda: run(texts)}, 3 if quick else 5)

    few = sorted((text for text in texts if len(text.words) > 1), key=len)[10 : -10 : max(1, len(texts) // 100)]  # short and long
    maps = [word_maps(model, text) for text in few]
    _check(few, maps, run(few)["relations"])
    ours, plain = _scoring(model, few, maps, run.plan, 3)
    name = Path(corpus).name.partition(".")[0]
    prepared = segments(model, 256 if quick else 1024)
    return [
        Row(
            "b",
            "relations: preparing batches, 128 tokens per text, 32,768 per batch",
            host_seconds(model, prepared, 3) * 100_000 / sum(len(text.words) for text in prepared),
            "s of a CPU",
            note="for 100,000 words: words, sentences, governors, labels, replicate weights; independent of the model and its device",
        ),
        Row(
            "b",
            f"relations / the bare pass, {len(texts)} sentences of {name}",
            ratio(times, "ours", "bare"),
            most=1.2,
            note=f"{spread(times, 'ours', 'bare')}; both directions, all relations, seven offsets, the permutation control",
        ),
        Row(
            "b",
            "scoring in a loop over heads and words / ours",
            plain / ours,
            least=20,
            note="the loop gets complete word maps; ours computes only what it needs of them",
        ),
    ]


def host_seconds(model: Model, texts: list[Encoded], rounds: int) -> float:
    """The CPU seconds that preparing batches of a GPU's size takes for `relations`, before any map is there."""
    plan = Plan.make([make("relations")], model.sites)
    planned = list(batches(texts, 32_768))

    def prepare() -> float:
        started = time.process_time()
        for batch in planned:
            BatchView(batch, "mean", partial(poisson_weights, replicates=500)).made_ready(plan, plan.by_level(), model.device)
        return time.process_time() - started

    prepare()
    return statistics.median(prepare() for _ in range(rounds))


def _check(texts: list[Encoded], maps: list[np.ndarray], found: State) -> None:
    """Raise an error unless both forms give the same number of right answers for every relation, direction and head."""
    expected: Counter[tuple[str, int, int]] = Counter()
    heads = maps[0].shape[1]
    for (_, relation, direction, layer, head), n in naive(texts, maps).items():
        expected[relation, direction, layer * heads + head] += n
    if any(found[f"right/{relation}"].sum(0)[direction, head] != n for (relation, direction, head), n in expected.items()):
        raise AssertionError("the loop must give the same counts")


def _scoring(model: Model, texts: list[Encoded], maps: list[np.ndarray], plan: Plan, rounds: int) -> tuple[float, float]:
    """The seconds of our scoring and of the loop, on word maps that are already computed."""
    batched = [batch for group in batches(texts, BATCH_TOKENS) for batch in _batched(model, group, plan)]
    scorer = make("relations", {"control": "none"})  # the loop has no control either
    state = scorer.start(plan.layout, 0)

    def score() -> None:
        for batch in batched:
            batch.shared.clear()  # data that depend only on the texts are part of the work
        for batch in batched:
            scorer.update(state, batch)

    score()
    pairs = [(seconds(score), seconds(lambda: naive(texts, maps))) for _ in range(rounds)]
    return statistics.median(ours for ours, _ in pairs), statistics.median(plain for _, plain in pairs)


def _batched(model: Model, texts: list[Encoded], plan: Plan) -> list[MapBatch]:
    view = BatchView(texts, "mean", partial(poisson_weights, replicates=0))
    found: list[MapBatch] = []
    model.stream(
        model.inputs(texts),
        lambda site, weights, visible, _: found.append(view.words(view.tokens(plan, site, weights.clone(), visible))),
    )
    return found
