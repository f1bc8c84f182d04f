"""Surface measures by length of texts, compared with the bare eager and the bare SDPA pass: `python
benchmarks/lengths.py`.

The models are untrained, of BERT-base's and of Llama-1B's shape, on a GPU in float32 and bfloat16, on a CPU in float32.
All contestants read the same batches. The table has the median over rounds of the ratio of their times, and the peak
memory of each beyond the model. Contestants that do not fit into memory are reported.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaModel

from common import Row, bare, interleaved, machine, ratio, runner, spread, table, untrained
from headscope.core.annotation import Annotation
from headscope.core.batch import CLS, SEP, WORD
from headscope.core.document import Word
from headscope.encoding.texts import Encoded
from headscope.measures import DEFAULT
from headscope.models.load import load
from headscope.models.model import Model
from headscope.models.sites import find_sites

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
LLAMA = {
    **{"hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"intermediate_size": 8192, "head_dim": 64},
}
BATCHES = 4  # for texts of up to MANY tokens: a run has many batches, and preparing one overlaps with computing the last
MANY = 2048
LENGTHS = (128, 512, 2048, 8192, 16384, 32768)


def text(model: Model, length: int, number: int) -> Encoded:
    """A text of `length` random tokens, each a word; some are commas."""
    rng = np.random.default_rng(number)
    ids = rng.integers(1000, 3000, length)
    pieces = tuple("," if id % 9 == 0 else f"w{id}" for id in ids)
    roles = (CLS, *[WORD] * (length - 2), SEP)
    words = tuple(Word(piece) for piece in pieces[1:-1])
    of = (-1, *range(length - 2), -1)
    return Encoded(f"{number}", Annotation.of_sentence(f"{number}", words), ids, np.zeros_like(ids), roles, of, pieces)


def model_of(name: str, length: int, dtype: str, device: str) -> Model:
    """An untrained model of a shape."""
    mini = load("mini", "cpu")
    if name == "base":
        model = untrained(mini, device, **BASE, max_position_embeddings=length)
    else:
        torch.manual_seed(0)
        with torch.device(device):
            network = LlamaModel(LlamaConfig(vocab_size=8192, max_position_embeddings=length, **LLAMA)).eval().requires_grad_(False)
        model = Model("llama", network, mini.tokenizer, *find_sites(network))
    model.network.to(getattr(torch, dtype))
    return model


def sdpa(model: Model, texts: Sequence[Encoded], batch_tokens: int) -> None:
    """Run the forward pass with fused attention, and nothing else."""
    bare(model, texts, batch_tokens, "sdpa")


def fits(work: Callable[[], object], device: str) -> float | None:
    """The peak memory of `work` beyond what is allocated, in GB on a GPU (0 on a CPU); None if there is not enough
    memory.
    """
    gc.collect()
    if torch.device(device).type != "cuda":
        work()
        return 0.0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    try:
        work()
        torch.cuda.synchronize()
    except (torch.OutOfMemoryError, RuntimeError) as error:
        if "memory" not in str(error):
            raise
        torch.cuda.empty_cache()
        return None
    return (torch.cuda.max_memory_allocated() - held) / 1e9


def compare(name: str, length: int, dtype: str, device: str, tokens: int, repeats: int, most_eager: int) -> tuple[Row, dict[str, Any]]:
    """The surface pass against both bare passes, with one model, length and dtype."""
    model = model_of(name, length, dtype, device)
    batches = BATCHES if length <= MANY and torch.device(device).type == "cuda" else 1
    texts = [text(model, length, number) for number in range(batches * max(1, tokens // length))]
    run = runner(model, DEFAULT, max(tokens, length))
    contestants: dict[str, Callable[[], object]] = {
        "eager": lambda: bare(model, texts, max(tokens, length)),
        "sdpa": lambda: sdpa(model, texts, max(tokens, length)),
        "surface": lambda: run(texts),
    }
    assert model.needs_maps is None, model.needs_maps
    memory = {label: None if label == "eager" and length > most_eager else fits(work, device) for label, work in contestants.items()}
    settle: Callable[[], object] = torch.cuda.synchronize if torch.device(device).type == "cuda" else lambda: None
    running = {label: work for label, work in contestants.items() if memory[label] is not None}
    times = interleaved(running, repeats, settle)
    middle = {label: sorted(taken)[len(taken) // 2] * 1e3 for label, taken in times.items()}
    to_eager = ratio(times, "surface", "eager") if "eager" in times else None
    record = {
        **{"model": name, "tokens": length, "texts": len(texts), "dtype": dtype, "device": device, "memory_gb": memory, "ms": middle},
        **{"surface/eager": to_eager, "surface/sdpa": ratio(times, "surface", "sdpa")},
    }
    note = f"{record['surface/sdpa']:.2f} × SDPA ({spread(times, 'surface', 'sdpa')}); " + ", ".join(
        f"{label} {middle[label]:.0f} ms, {memory[label]:.1f} GB" for label in running
    )
    what = f"{name}, {dtype}, {len(texts)} × {length:,} tokens: {', '.join(DEFAULT)} / the bare eager pass"
    return Row("h", what, to_eager, note=note if to_eager is not None else f"eager does not fit or was not tried; {note}"), record


def rows(quick: bool = False) -> list[Row]:
    """Part h of the table: on a GPU if there is one, else on the CPU."""
    gpu = torch.cuda.is_available()
    device, tokens = ("cuda", 32768) if gpu else ("cpu", 2048)
    lengths = LENGTHS[:2] if quick else LENGTHS if gpu else LENGTHS[:3]
    dtypes = ("float32", "bfloat16") if gpu else ("float32",)
    names = ("base", "llama") if gpu else ("base",)
    return [
        compare(name, length, dtype, device, tokens, 1 if quick else 3, 16384)[0]
        for name in names
        for dtype in dtypes
        for length in lengths
    ]


def main() -> None:
    """Read the options, measure, print a table and JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", default="base,llama")
    parser.add_argument("--dtypes", default=None, help="float32,bfloat16 on a GPU, float32 on a CPU")
    parser.add_argument("--lengths", default=None, help="tokens per text, as in 128,512; up to 2,048 on a CPU")
    parser.add_argument("--tokens", type=int, default=None, help="tokens per batch: 32,768 on a GPU, 2,048 on a CPU")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--most-eager", type=int, default=16384, help="the longest texts for eager attention, in tokens")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    gpu = torch.device(options.device).type == "cuda"
    lengths = [int(number) for number in options.lengths.split(",")] if options.lengths else [n for n in LENGTHS if gpu or n <= 2048]
    rows, records = [], []
    for name in options.models.split(","):
        for dtype in (options.dtypes or ("float32,bfloat16" if gpu else "float32")).split(","):
            for length in lengths:
                row, record = compare(
                    *(name, length, dtype, options.device, options.tokens or (32768 if gpu else 2048)),
                    *(options.repeats, options.most_eager),
                )
                rows.append(row)
                records.append(record)
                print(f"{row.what}: {row.measured}; {row.note}", flush=True)
    print("\n".join([*(f"- {line}" for line in machine(options.threads)), "", table(rows), ""]))
    print("\n".join(json.dumps(record) for record in records))


if __name__ == "__main__":
    main()
