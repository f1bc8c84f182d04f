"""The shared parts of the benchmarks: inputs, models, timing, the machine in words, and the rows of the table.

Only what a forward pass and its measures need of headscope is imported, so that `gpu.py` runs where little is
installed.
"""

from __future__ import annotations

import os
import platform
import random
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

from headscope.core.document import Document, Sentence
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.corpora.permuted import Trees
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.compute import ShardRunner
from headscope.engine.plan import Plan
from headscope.measures import REGISTRY, make
from headscope.models.capture import implementation
from headscope.models.model import Model
from headscope.models.sites import find_sites

LENGTH, BATCH_TOKENS = 128, 2048
SURFACE = tuple(name for name in ("positions", "tokens", "entropy", "relations", "distances") if name in REGISTRY)
Times = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Row:
    """One row of the table. `most` and `least` are limits that the value should meet, if there are any. A value of None
    was not measured; `note` says why.
    """

    part: str
    what: str
    value: float | None
    unit: str = "×"
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def measured(self) -> str:
        """The value with its unit, to three significant digits."""
        if self.value is None:
            return "skipped"
        figures = f"{self.value:,.0f}" if abs(self.value) >= 100 else f"{self.value:.3g}"
        return f"{figures} {self.unit}".strip()

    @property
    def wanted(self) -> str:
        """The limits in words."""
        bars = [(word, bar) for word, bar in (("at most", self.most), ("at least", self.least)) if bar is not None]
        return "".join(f"{word} {bar:g}" for word, bar in bars)

    @property
    def met(self) -> bool | None:
        """Whether the limits are met; None if there are none or nothing was measured."""
        if self.value is None or (self.most is None and self.least is None):
            return None
        return (self.most is None or self.value <= self.most) and (self.least is None or self.value >= self.least)

    def record(self) -> dict[str, object]:
        """The row as a JSON object."""
        return {**asdict(self), "met": self.met}


def table(rows: Iterable[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| | what | measured | wanted | met | |", "|---|---|---|---|---|---|"]
    words = {True: "yes", False: "no", None: ""}
    lines += [f"| {row.part} | {row.what} | {row.measured} | {row.wanted} | {words[row.met]} | {row.note} |" for row in rows]
    return "\n".join(lines)


def machine(threads: int) -> list[str]:
    """The machine on which the benchmark ran, as lines of text."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ("headscope", "torch", "transformers", "numpy", "numba", "triton")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent)
    return [
        f"CPU: {processor()}, {os.cpu_count()} cores, {threads} threads used, {memory:.0f} GiB of memory",
        f"GPU: {graphics()}",
        f"system: {platform.system()} {platform.release()}, Python {platform.python_version()}",
        f"packages: {', '.join(f'{name} {_version(name)}' for name in packages)}",
        f"commit: {commit.stdout.strip() or 'unknown'}",
        f"date: {datetime.now(UTC):%Y-%m-%d}",
    ]


def processor() -> str:
    """The name of the CPU."""
    known = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", known.read_text(encoding="utf-8"), re.MULTILINE) if known.exists() else None
    return found.group(1) if found else platform.processor() or platform.machine()


def graphics() -> str:
    """The GPU in words."""
    if not torch.cuda.is_available():
        return "none"
    properties = torch.cuda.get_device_properties(0)
    return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def documents(count: int, length: int = LENGTH) -> Iterator[Document]:
    """Documents of two paragraphs, each with shuffled sentences of the sampler, long enough for a segment of `length`
    tokens.
    """
    pool = [sentence for document in read("sampler") for sentence in document.sentences]
    rng = random.Random(0)
    size = max(20, length // 8)
    for number in range(count):
        chosen = [Sentence(sentence.words, paragraph=2 * place // size) for place, sentence in enumerate(rng.sample(pool, size))]
        yield Document(f"shuffle {number}", tuple(chosen))


def segments(model: Model, count: int, length: int = LENGTH) -> list[Encoded]:
    """Inputs of exactly `length` tokens, with trees, and with the trees of other sentences as a control."""
    encoder = Encoder(model.tokenizer, unit="pair", max_length=length, trees=Trees(read("sampler")))
    texts = list(encoder.texts(documents(count, length), Tally()))
    if {len(text) for text in texts} != {length}:
        raise AssertionError(f"every segment must have {length} tokens")
    return texts


def untrained(mini: Model, device: str = "cpu", **shape: int) -> Model:
    """A BERT like the embedded model, except for its shape, with weights large enough for heads to differ."""
    torch.manual_seed(0)
    config = BertConfig(**{**mini.network.config.to_dict(), **shape, "initializer_range": 0.05})
    network = BertModel(config, add_pooling_layer=False).to(device).eval().requires_grad_(False)
    return Model("untrained", network, mini.tokenizer, *find_sites(network))


def bare(model: Model, texts: Sequence[Encoded], batch_tokens: int = BATCH_TOKENS, attention: str = "eager") -> None:
    """Run the forward pass with one implementation of attention, and nothing else."""
    with torch.inference_mode(), implementation(model.network, attention):
        for batch in batches(texts, batch_tokens):
            model.network(**model.inputs(batch), use_cache=False)


def runner(model: Model, names: Sequence[str], batch_tokens: int = BATCH_TOKENS, options: Mapping[str, Any] | None = None) -> ShardRunner:
    """The forward pass with these measures, with these options and 500 bootstrap replicates."""
    return ShardRunner(model, Plan.make([make(name, options) for name in names], model.sites), batch_tokens=batch_tokens)


def seconds(work: Callable[[], object], settle: Callable[[], object] = lambda: None) -> float:
    """The duration of `work`. `settle` waits until a device has finished."""
    settle()
    started = time.perf_counter()
    work()
    settle()
    return time.perf_counter() - started


def interleaved(contestants: Mapping[str, Callable[[], object]], rounds: int, settle: Callable[[], object] = lambda: None) -> Times:
    """The seconds of each contestant in each of several rounds, after one warm-up.

    All contestants run in every round, in alternating order, so that other load on the machine affects all of them.
    """
    for work in contestants.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name in list(contestants)[:: -1 if number % 2 else 1]:
            times[name].append(seconds(contestants[name], settle))
    return times


def ratio(times: Times, one: str, other: str) -> float:
    """The median over rounds of the time of `one` divided by that of `other`."""
    return statistics.median(a / b for a, b in zip(times[one], times[other], strict=True))


def spread(times: Times, one: str, other: str) -> str:
    """The smallest and the largest of these ratios, in words."""
    ratios = sorted(a / b for a, b in zip(times[one], times[other], strict=True))
    return f"{ratios[0]:.3g} to {ratios[-1]:.3g}"
