"""Tokens per second from files to tables: `python benchmarks/end_to_end.py`.

The input is texts in several files of JSON lines; the model is an untrained one of BERT-base's shape (on a CPU, of the
embedded model's); the run computes the three default measures with 500 replicates. A whole run is timed, with loading
and writing, once with windows of 128 tokens of whole documents, once with sentences. `--profile` also prints the time
of each part of a run, which makes a GPU wait.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from common import Row

# Every process that reads ahead imports these again, so everything else is imported where it is used.
WAYS: dict[str, dict[str, Any]] = {
    "windows of 128 tokens": {"unit": "document", "overlong": "window"},
    "sentences": {"unit": "sentence", "overlong": "drop"},
}


def saved(folder: Path, shape: dict[str, int]) -> Path:
    """A folder with an untrained model of a shape, and the embedded model's tokenizer."""
    import torch
    from transformers import BertConfig, BertModel

    from headscope.models.load import load

    mini = load("mini", "cpu")
    torch.manual_seed(0)
    config = BertConfig(**{**mini.network.config.to_dict(), **shape, "initializer_range": 0.05})
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    mini.tokenizer.hf.save_pretrained(folder)
    return folder


def measured(name: str, model: Path, files: list[Path], options: argparse.Namespace) -> Row:
    """The speed of one whole run."""
    import headscope as hs
    from common import Row
    from headscope.measures import DEFAULT

    began = time.perf_counter()
    read: list[tuple[float, int]] = []  # after each shard: the time, and the number of tokens read so far
    with tempfile.TemporaryDirectory() as out:
        run = hs.run(
            str(model),
            [str(path) for path in files],
            list(DEFAULT),
            Path(out) / "run",
            device=options.device,
            dtype=options.dtype,
            batch_tokens=options.batch_tokens,
            shard_tokens=options.shard_tokens,
            readers=options.readers,
            engine="processes" if options.workers else "local",
            workers=options.workers or 1,
            progress=lambda share, texts, tokens: read.append((time.perf_counter(), tokens)),
            gallery=0,
            profile=options.profile,
            max_length=128,
            **WAYS[name],
        )
        taken = time.perf_counter() - began
    tokens = int(run.results.manifest["counts"]["tokens"])
    (first, before), (last, after) = read[0], read[-1]
    steady = f", {(after - before) / (last - first):,.0f} per second from the first shard to the last" if last > first else ""
    workers = f", {options.workers} workers" if options.workers else ""
    note = (
        f"{tokens:,} tokens in {taken:.1f} s{steady}; first shard after {first - began:.1f} s; "
        f"{options.readers} readers{workers}, {options.batch_tokens:,} tokens per batch"
    )
    return Row("k", f"{options.device}, {options.dtype}, {name}", tokens / taken, "tokens per second", note=note)


def main() -> None:
    """Read the options, measure, print a table."""
    import torch

    from common import machine, table
    from gpu import BASE
    from scale import write

    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if gpu else "cpu")
    parser.add_argument("--dtype", default="bfloat16" if gpu else "float32")
    parser.add_argument("--sentences", type=int, default=400_000 if gpu else 4_000)
    parser.add_argument("--files", type=int, default=32)
    parser.add_argument("--batch-tokens", type=int, default=32768 if gpu else 2048)
    parser.add_argument("--shard-tokens", type=int, default=1 << 20, help="tokens between two checkpoints")
    parser.add_argument("--readers", type=int, default=12 if gpu else 0)
    parser.add_argument("--workers", type=int, default=0, help="processes that share the device; 0: this one alone")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--profile", action="store_true", help="print where the time went")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as name:
        files = write(Path(name), options.sentences, "jsonl", options.files, None)
        shape = BASE if torch.device(options.device).type == "cuda" else {}
        model = saved(Path(name) / "model", shape)
        found = [measured(way, model, files, options) for way in options.ways]
    print("\n".join([*(f"- {line}" for line in machine(options.threads)), "", table(found)]))


if __name__ == "__main__":
    main()
