"""What the three surface measures cost, as ratios of times taken in one run: `make bench`, or `python benchmarks/surface.py`.

Compared, over the same batches of 128-token segments with the embedded model:
- bare: the eager forward pass and nothing else;
- ours: positions, tokens and entropy with 500 bootstrap replicates;
- naive: `output_attentions=True`, every map to numpy, the same statistics in plain vectorised numpy, no intervals.
Then the peak memory of a run over 200 and over 2,000 segments, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

import headscope as hs
from headscope.core.batch import CLS, SEP
from headscope.core.document import Document, Sentence
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.measures import make
from headscope.models.capture import implementation
from headscope.models.model import Model
from headscope.runs.plan import Plan
from headscope.runs.shard import ShardRunner

LENGTH, BATCH_TOKENS = 128, 2048


def documents(count: int) -> Iterator[Document]:
    """Documents of two paragraphs, each a shuffle of the sampler's sentences: enough for a segment of full length."""
    pool = [sentence for document in read("sampler") for sentence in document.sentences]
    rng = random.Random(0)
    for number in range(count):
        chosen = [Sentence(sentence.words, paragraph=place // 10) for place, sentence in enumerate(rng.sample(pool, 20))]
        yield Document(f"shuffle {number}", tuple(chosen))


def segments(model: Model, count: int) -> list[Encoded]:
    """Inputs of exactly `LENGTH` tokens."""
    texts = list(Encoder(model.tokenizer, unit="pair", max_length=LENGTH).texts(documents(count), Tally()))
    assert {len(text) for text in texts} == {LENGTH}
    return texts


def bare(model: Model, texts: list[Encoded]) -> None:
    """The forward pass alone."""
    with torch.inference_mode(), implementation(model.network, "eager"):
        for batch in batches(texts, BATCH_TOKENS):
            model.network(**model.inputs(batch), use_cache=False)


def naive(model: Model, texts: list[Encoded]) -> np.ndarray:
    """Plain numpy, one text after the other, all heads at once."""
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


def seconds(work: Callable[[], object]) -> float:
    """How long `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compare(count: int, repeats: int) -> None:
    """Time the three, interleaved, and print their ratios."""
    model = hs.load(device="cpu")
    texts = segments(model, count)
    plan = Plan.make([make(name) for name in ("positions", "tokens", "entropy")], model.sites)
    runner = ShardRunner(model, plan, batch_tokens=BATCH_TOKENS)
    found = runner(texts)
    table = plan.measures[2].tables(found["entropy"], plan.layout)["entropy"]
    expected = naive(model, texts)[10].ravel()
    assert np.allclose(np.asarray(table["value"])[:144], expected, atol=1e-5), "the naive form must find the same numbers"
    times: dict[str, list[float]] = {"bare": [], "ours": [], "naive": []}
    for _ in range(repeats):  # interleaved, so that a busy moment hits all three
        times["bare"].append(seconds(lambda: bare(model, texts)))
        times["ours"].append(seconds(lambda: runner(texts)))
        times["naive"].append(seconds(lambda: naive(model, texts)))
    middle = {name: statistics.median(values) for name, values in times.items()}
    for name, value in middle.items():
        print(f"{name:>6}  {1000 * value / count:7.2f} ms a segment   (of {', '.join(f'{v:.2f}' for v in times[name])} s)")
    print(f"ours / bare   {middle['ours'] / middle['bare']:.3f}   wanted: at most 1.25")
    print(f"naive / ours  {middle['naive'] / middle['ours']:.2f}   wanted: at least 4")
    added = {name: middle[name] - middle["bare"] for name in ("naive", "ours")}
    print(f"what the statistics add to the forward pass, naive / ours  {added['naive'] / added['ours']:.1f}")


def memory(count: int) -> None:
    """Run as a child: print the peak memory of a whole run over a file, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for document in documents(count):
                a, b = (" ".join(sentence.text for sentence in paragraph) for paragraph in document.paragraphs())
                file.write(json.dumps({"id": document.id, "a": a, "b": b}) + "\n")
        hs.run("mini", path, max_length=LENGTH, device="cpu")
    # Not getrusage: its maximum is inherited from the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, default=128, help="segments to time")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-memory", action="store_true", help="leave the memory comparison out")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        memory(options.memory_of)
        return
    print(f"{options.segments} segments of {LENGTH} tokens, {options.threads} threads, torch {torch.__version__}")
    compare(options.segments, options.repeats)
    if not options.no_memory:
        peaks = {}
        for count in (200, 2000):
            command = [sys.executable, __file__, "--memory-of", str(count), "--threads", str(options.threads)]
            peaks[count] = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            print(f"peak memory of a run over {count:>5,} segments  {peaks[count]:7.0f} MB")
        print(f"memory ratio  {peaks[2000] / peaks[200]:.3f}   wanted: at most 1.05")


if __name__ == "__main__":
    main()
