"""The cost of large corpora: `python benchmarks/scale.py plan` and `python benchmarks/scale.py rates --device cuda`.

`plan` writes corpora of synthetic sentences, divided into 100 files, and plans runs over them with a tiny model, each
in a separate process. It prints seconds per sentence and peak memory of the largest corpus against those of the
smallest. `rates` prints the figures of docs/scale.md by name: tokens per second of reading and encoding by a core, and
of computing by the device for each model, dtype and set of measures; the time to store the sums of a shard, and their
bytes; then the cost of a billion words. `rates` needs neither pyarrow nor numba.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from common import LENGTH, SURFACE, Row, machine, runner, seconds, segments, table, untrained
from gpu import BASE, settle_on
from headscope.core.document import Sentence
from headscope.core.state import States
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.packed_texts import PackedTexts, packed_shards
from headscope.engine.prefetch import Prefetcher
from headscope.models.load import load
from headscope.models.model import Model
from headscope.results.counts import Counts

FILES = 100
SIZES = (10_000, 100_000, 1_000_000)
SHORT = 9  # the most words of a sentence that is planned
TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 128}
SETS = {"SURFACE": ("positions", "tokens", "entropy"), "CLARK": SURFACE}
WORDS = 1_000_000_000
GPUS = (1, 8, 64)


def sentences(longest: int | None = None) -> list[Sentence]:
    """The sentences of the sampler, or its short ones."""
    return [one for document in read("sampler") for one in document.sentences if longest is None or len(one) <= longest]


def write(folder: Path, count: int, format: str, files: int = FILES, longest: int | None = SHORT) -> list[Path]:
    """Write a corpus of `count` sentences drawn from the sampler, ten per document, divided into files. Files are
    compressed if the format ends in .gz.
    """
    rng, pool = random.Random(0), sentences(longest)
    blocks = [_rows(one) if format.startswith("conllu") else one.text for one in pool]
    opened: Callable[..., object] = gzip.open if format.endswith(".gz") else open
    paths = []
    for number in range(files):
        path = folder / f"{number:04d}.{format}"
        first, last = count * number // files, count * (number + 1) // files
        with opened(path, "wt", encoding="utf-8") as file:  # type: ignore[attr-defined]
            for start in range(first, last, 10):
                drawn = rng.choices(blocks, k=min(10, last - start))
                if format.startswith("conllu"):
                    file.write(f"# newdoc id = document {start}\n" + "".join(drawn))
                else:
                    file.write(json.dumps({"id": f"document {start}", "text": " ".join(drawn)}) + "\n")
        paths.append(path)
    return paths


def _rows(sentence: Sentence) -> str:
    rows = [
        (number, word.form, word.lemma or "_", word.upos or "_", "_", "_", word.head, word.relation or "_", "_", "_")
        for number, word in enumerate(sentence.words, 1)
    ]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows) + "\n"


def plans(sizes: Sequence[int], format: str) -> list[Row]:
    """Time per sentence and memory of planning, by the size of the corpus."""
    found: list[Row] = []
    costs = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), size, format)
            done = subprocess.run([sys.executable, __file__, "one", folder], capture_output=True, text=True, check=False)
            if done.returncode:
                raise AssertionError(done.stderr)
            cpu, peak, tokens, shards = costs[size] = tuple(map(float, done.stdout.split()))
        note = f"{tokens:,.0f} tokens, {shards:,.0f} shards; {tokens / cpu:,.0f} tokens per second of one core, peak {peak:,.0f} MB"
        found.append(Row("s", f"planning {size:,} sentences in {FILES} files ({format})", 1e6 * cpu / size, "µs per sentence", note=note))
    few, many = costs[min(sizes)], costs[max(sizes)]
    of = f"{max(sizes):,} sentences / {min(sizes):,}"
    found.append(Row("s", f"time per sentence, {of}", many[0] / max(sizes) / (few[0] / min(sizes)), most=1.2))
    found.append(Row("s", f"peak memory, {of}", many[1] / few[1], most=1.1))
    return found


def plan_one(folder: Path) -> str:
    """CPU seconds, peak megabytes, tokens and shards of planning the corpus in a folder. Memory includes libraries and
    model.
    """
    from headscope.engine.spec import make_spec
    from headscope.runs.estimate import plan_run

    torch.set_num_threads(1)
    model = untrained(load("mini", "cpu"), "cpu", **TINY)
    spec = make_spec({"corpus": [str(path) for path in sorted(folder.iterdir())], "measures": list(SETS["SURFACE"])})
    plan_run(spec.model_copy(update={"limit": 100}), model=model, tried=0)  # set-up does not count
    began = time.process_time()
    planned = plan_run(spec, model=model, tried=0)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    return f"{time.process_time() - began} {peak} {planned.tokens} {planned.shards}"


def reading(format: str, count: int = 3000) -> tuple[float, float]:
    """Tokens per second of reading and encoding by one core, and tokens per word."""
    model = load("mini", "cpu")
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), count, format, 1, None)
        began = time.process_time()
        tokens = words = 0
        for text in Encoder(model.tokenizer).texts(read(*paths), Tally()):
            tokens += len(text)
            words += len(text.words)
        return tokens / (time.process_time() - began), tokens / words


def passing(count: int = 3000) -> float:
    """Tokens per second of the process that assigns shards while another process reads."""
    model, counts = load("mini", "cpu"), Counts()

    def counted() -> Iterator[PackedTexts]:
        for texts in Prefetcher(read(*paths), 1).documents(Encoder(model.tokenizer), counts.dropped):
            counts.count(texts.document, texts.total, texts=len(texts))
            yield texts

    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), count, "conllu", 2, None)
        began = time.process_time()
        for shard in packed_shards(counted(), 16384):
            pickle.dumps(shard)
        return counts.tokens / (time.process_time() - began)


def keeping(states: States) -> float:
    """The seconds of merging the sums of a shard with earlier ones and encoding them as a file."""
    try:
        from headscope.results.folder import encode_states
    except ImportError:  # pyarrow is not installed
        return seconds(lambda: merge(states, states))
    return seconds(lambda: encode_states(merge(states, states), {}))


def merge(left: States, right: States) -> States:
    """The merged sums of two shards."""
    return {name: state.merge(right[name]) for name, state in left.items()}


def inputs(model: Model, unit: str, tokens: int) -> list[Encoded]:
    """Sentences of the sampler, repeated, or segments of 128 tokens; about `tokens` tokens in total."""
    if unit == "SEGMENTS":
        return segments(model, max(1, tokens // LENGTH))
    texts = list(Encoder(model.tokenizer).texts(read("sampler"), Tally()))
    return list(_repeated(texts, tokens))


def _repeated(texts: Sequence[Encoded], tokens: int) -> Iterator[Encoded]:
    while tokens > 0:
        for text in texts:
            yield text
            tokens -= len(text)


def rates(device: str, models: Sequence[str], dtypes: Sequence[str], batch_tokens: int, rounds: int) -> dict[str, float]:
    """The figures by name."""
    found: dict[str, float] = {}
    for format in ("conllu", "jsonl", "conllu.gz", "jsonl.gz"):
        found[f"RATE_READ_{format.upper().replace('.', '_')}"], a_word = reading(format)
        found.setdefault("TOKENS_A_WORD", a_word)  # of CoNLL-U, where punctuation marks are words
    found["RATE_PASS"] = passing()
    for name in models:
        for dtype in dtypes:
            model = load("mini", device, dtype) if name == "mini" else untrained(load("mini", "cpu"), device, **BASE)
            model.network.to(getattr(torch, dtype))
            for unit in ("SENTENCES", "SEGMENTS"):
                texts = inputs(model, unit, 8 * batch_tokens)
                for label, measures in SETS.items():
                    run = runner(model, measures, batch_tokens)
                    states = run(texts)  # to warm up
                    taken = min(seconds(lambda run=run, texts=texts: run(texts), settle_on(device)) for _ in range(rounds))  # type: ignore[misc]
                    found[f"RATE_{name.upper()}_{dtype.upper()}_{label}_{unit}"] = sum(map(len, texts)) / taken
                    if unit == "SEGMENTS" and dtype == dtypes[0]:
                        found[f"KEEP_{name.upper()}_{label}_MS"] = 1000 * keeping(states)
                        found[f"STATE_{name.upper()}_{label}_MB"] = sum(a.nbytes for s in states.values() for a in s.arrays.values()) / 1e6
                    print(f"# {name} {dtype} {label} {unit} done", file=sys.stderr, flush=True)
    return found


def cost(words: float, tokens_a_word: float, gpus: int, rate: float, passed: float, shard_tokens: int, keep: float) -> tuple[float, str]:
    """The seconds that a number of words takes on a number of GPUs of `rate` tokens per second, and the bottleneck: the
    GPUs, or the process that assigns shards at `passed` tokens per second and stores each in `keep` seconds. There are
    as many readers as needed.
    """
    tokens = words * tokens_a_word
    computing, giving = tokens / (gpus * rate), tokens / passed + tokens / shard_tokens * keep
    return max(computing, giving), "computing" if computing >= giving else "assigning and storing"


def billion(found: dict[str, float], batch_tokens: int) -> list[str]:
    """The cost of a billion words, as Markdown: hours, the bottleneck, and the number of readers that keep up."""
    lines = [f"| | {' | '.join(f'{gpus} GPUs' for gpus in GPUS)} |", "|---" * (len(GPUS) + 1) + "|"]
    tokens = WORDS * found["TOKENS_A_WORD"]
    for name, rate in found.items():
        parts = name.split("_")
        if parts[0] == "RATE" and parts[1] not in ("READ", "PASS"):
            keep = found.get(f"KEEP_{parts[1]}_{parts[3]}_MS", 0.0) / 1000
            costs = [cost(WORDS, found["TOKENS_A_WORD"], gpus, rate, found["RATE_PASS"], 32 * batch_tokens, keep) for gpus in GPUS]
            readers = [max(1, round(tokens / taken / found["RATE_READ_CONLLU"] + 0.5)) for taken, _ in costs]
            shown = (f"{taken / 3600:.2f} h ({bound}), {n} readers" for (taken, bound), n in zip(costs, readers, strict=True))
            lines.append(f"| {name} {rate:,.0f} tokens/s | {' | '.join(shown)} |")
    return lines


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    planning = commands.add_parser("plan")
    planning.add_argument("--sentences", type=int, nargs="+", default=SIZES)
    planning.add_argument("--format", choices=["conllu", "conllu.gz", "jsonl", "jsonl.gz"], default="conllu")
    one = commands.add_parser("one")
    one.add_argument("folder", type=Path)
    rating = commands.add_parser("rates")
    rating.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    rating.add_argument("--models", nargs="+", choices=["mini", "base"], default=["mini", "base"])
    rating.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    rating.add_argument("--batch-tokens", type=int, help="tokens per batch [default: 2048, on a GPU 32768]")
    rating.add_argument("--shards", type=int, default=3, help="rounds to time; the fastest counts")
    options = parser.parse_args()
    if options.what == "one":
        print(plan_one(options.folder))
        return
    print("\n".join(f"- {line}" for line in machine(torch.get_num_threads())), flush=True)
    if options.what == "plan":
        print(f"\n{table(plans(options.sentences, options.format))}")
        return
    batch_tokens = options.batch_tokens or (2048 if options.device == "cpu" else 32768)
    found = rates(options.device, options.models, options.dtypes, batch_tokens, options.shards)
    print("\n" + "\n".join(f"{name} = {value:,.4g}" if value < 100 else f"{name} = {value:,.0f}" for name, value in found.items()))
    print("\n" + "\n".join(billion(found, batch_tokens)))


if __name__ == "__main__":
    main()
