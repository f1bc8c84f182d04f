"""The cost of measures on a GPU (part f), as ratios to the bare eager forward pass: `python benchmarks/gpu.py`, or a
part of `make bench`.

The models are the embedded one and an untrained one of BERT-base's shape, in float32 and bfloat16, over segments of 128
tokens. The numbers of the device in float32 are compared with the CPU's; the command fails if they
differ. It prints a Markdown table, then the same rows as JSON lines. With `--profile` it prints the time of each part
of one batch instead. Neither pyarrow nor numba is needed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from common import LENGTH, SURFACE, Row, Times, bare, interleaved, machine, ratio, runner, seconds, segments, spread, table, untrained
from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded
from headscope.measures import Measure
from headscope.models.load import load
from headscope.models.model import Model

BASE = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
}
MODELS = ("mini", "base")
DTYPES = ("float32", "bfloat16")
TOLERANCE = 1e-4  # shares of attention and nats
# The largest share of all heads' answers for a relation that can differ: either of two equal weights can win, and the
# weights of an untrained model are nearly equal.
FLIPPED = {"mini": 0.005, "base": 0.02}
ALL = "the whole pass"
SAMPLE = 16
CHECKED = 16  # texts whose figures are compared with the CPU's


def model_of(name: str, dtype: str, device: str) -> Model:
    """The embedded model, or an untrained one of BERT-base's shape."""
    if name == "mini":
        return load("mini", device, dtype)
    model = untrained(load("mini", "cpu"), device, **BASE)
    model.network.to(getattr(torch, dtype))
    return model


def settle_on(device: str) -> Callable[[], object]:
    """A function that waits until the device has finished its work."""
    return torch.cuda.synchronize if torch.device(device).type == "cuda" else lambda: None


def capture(model: Model, texts: Sequence[Encoded], batch_tokens: int) -> None:
    """Run the forward pass and capture every map, without using it."""
    for batch in batches(texts, batch_tokens):
        model.stream(model.inputs(batch), lambda site, *_: None)


def difference(measure: Measure, one: State, other: State, layout: HeadLayout) -> float:
    """The distance of two states of a measure: the largest difference of values in its tables or, for relations, the
    share of answers that differ.
    """
    if measure.name == "relations":
        return max(
            float(np.abs(right - other[f"right/{label}"]).sum() / (one[f"n/encoder/{label}"].sum() * right[0].size))
            for label, right in one.family("right/").items()
        )
    tables = [measure.tables(state, layout) for state in (one, other)]
    compared = [name for name in tables[0] if name in (measure.name, f"{measure.name}_layers", f"{measure.name}_pairs")]
    ours, theirs = (np.concatenate([np.asarray(found[name]["value"], dtype=float) for name in compared]) for found in tables)
    if ours.shape != theirs.shape or (np.isnan(ours) != np.isnan(theirs)).any():
        raise AssertionError(f"{measure.name}: the tables of the two devices have different rows")
    return float(np.nanmax(np.abs(ours - theirs)))


def agree(name: str, texts: Sequence[Encoded], device: str) -> Row:
    """A row with the largest difference between a device's numbers and the CPU's in float32; an error if one is too
    large.
    """
    here, there = (runner(model_of(name, "float32", place), SURFACE) for place in ("cpu", device))
    ours, theirs = here(texts), there(texts)
    apart = {
        measure.name: difference(measure, ours[measure.name], theirs[measure.name], here.plan.layout) for measure in here.plan.measures
    }
    for measure, far in apart.items():
        bar = FLIPPED[name] if measure == "relations" else TOLERANCE
        if not far <= bar:  # so that NaN fails too
            raise AssertionError(f"{name}: {measure} on {device} is {far:.1e} from the CPU's, where {bar:.0e} is allowed")
    note = ", ".join(f"{measure} {far:.0e}" for measure, far in apart.items())
    return Row("f", f"{name}: float32 figures on {device} - on the CPU, at most", max(apart.values()), "", most=FLIPPED[name], note=note)


def bandwidth(device: str) -> float:
    """Bytes per second, read and written, of a copy on the device."""
    source = torch.empty((1 << 30) if torch.device(device).type == "cuda" else (1 << 27), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    taken = interleaved({"copy": lambda: target.copy_(source)}, 5, settle_on(device))
    return 2 * source.numel() / statistics.median(taken["copy"])


def compare(name: str, dtype: str, texts: Sequence[Encoded], device: str, batch_tokens: int, repeats: int, speed: float) -> list[Row]:
    """Rows for every measure, and for all of them together, against the bare pass, with one model in one dtype."""
    model = model_of(name, dtype, device)
    contestants: dict[str, Callable[[], object]] = {
        "bare": lambda: bare(model, texts, batch_tokens),
        "capture": lambda: capture(model, texts, batch_tokens),
    }
    for label, names in {**{measure: (measure,) for measure in SURFACE}, ALL: SURFACE}.items():
        run = runner(model, names, batch_tokens)
        contestants[label] = lambda run=run: run(texts)  # type: ignore[misc]
    few = runner(model, ["distances"], batch_tokens, {"sample": SAMPLE})
    contestants[f"distances, {SAMPLE} rows of each text"] = lambda: few(texts)
    times = interleaved(contestants, repeats, settle_on(device))
    size = next(model.network.parameters()).element_size()
    maps = len(texts) * model.layout.size * LENGTH**2
    head = f"{name} {dtype}"
    once = 1000 * statistics.median(times["bare"])
    found = [Row("f", f"{head}: the bare eager forward pass", once, "ms", note=f"{len(texts)} segments, {batch_tokens} tokens per batch")]
    for label in list(contestants)[1:]:
        note = f"{spread(times, label, 'bare')}; adds {_added(times, label):.3g} ms"
        if label != "capture":
            note += f", where reading the maps once takes {1000 * maps * size / speed:.2g}"
        if label == "distances":
            terms = maps * (model.layout.size - 1) / 2
            note += f"; {terms / 1e6 / max(_added(times, label), 1e-9):.3g} billion terms of pairs per second"
        what = f"{head}: {'every map captured' if label == 'capture' else label} / the bare pass"
        found.append(Row("f", what, ratio(times, label, "bare"), most=1.5, note=note))
    return found


def _added(times: Times, label: str) -> float:
    """The milliseconds that a contestant takes beyond the bare pass."""
    return 1000 * statistics.median(a - b for a, b in zip(times[label], times["bare"], strict=True))


def profile(model: Model, texts: Sequence[Encoded], device: str, batch_tokens: int) -> None:
    """Print the time of each part of one batch, on the device and the host, for the bare pass and each measure."""
    few = next(iter(batches(texts, batch_tokens)))
    works: dict[str, Callable[[], object]] = {"bare": lambda: bare(model, few, batch_tokens)}
    for name in SURFACE:
        run = runner(model, [name], batch_tokens)
        works[name] = lambda run=run: run(few)  # type: ignore[misc]
    settle = settle_on(device)
    on_device = torch.device(device).type == "cuda"
    activities = [torch.profiler.ProfilerActivity.CPU, *([torch.profiler.ProfilerActivity.CUDA] if on_device else [])]
    for name, work in works.items():
        seconds(work, settle)
        with torch.profiler.profile(activities=activities) as taken:
            seconds(work, settle)
        for key in ["self_cuda_time_total"] * on_device + ["self_cpu_time_total"]:
            print(f"\n## {name}, {len(few)} texts, by {key}\n")
            print(_averages(taken).table(sort_by=key, row_limit=12, max_name_column_width=60))


def _averages(taken: torch.profiler.profile) -> Any:
    return taken.key_averages()


def measured(
    device: str,
    count: int,
    batch_tokens: int,
    repeats: int,
    models: Sequence[str] = MODELS,
    dtypes: Sequence[str] = DTYPES,
    checked: int = CHECKED,
) -> list[Row]:
    """The rows of all models and dtypes. Each is also printed to standard error as soon as it is measured."""
    texts = segments(load("mini", "cpu"), count)
    speed = bandwidth(device)
    found: list[Row] = []

    def add(*rows: Row) -> None:
        found.extend(rows)
        print("\n".join(json.dumps(row.record()) for row in rows), file=sys.stderr, flush=True)

    add(Row("f", "a copy on the device", speed / 1e9, "GB/s", note="bytes read and written"))
    for name in models:
        for dtype in dtypes:
            add(*compare(name, dtype, texts, device, batch_tokens, repeats, speed))
        add(agree(name, texts[:checked], device))
    return found


def rows(quick: bool = False) -> list[Row]:
    """Part f of the table."""
    if not torch.cuda.is_available():
        return [Row("f", "the same on a GPU", None, note="there is no CUDA device")]
    return measured("cuda", 128 if quick else 512, 32768, 3 if quick else 7)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--segments", type=int, default=512, help="segments to time")
    parser.add_argument("--batch-tokens", type=int, default=32768, help="tokens per batch")
    parser.add_argument("--repeats", type=int, default=7, help="rounds; their median is taken")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--checked", type=int, default=CHECKED, help="texts compared with the CPU, which is slow without numba")
    parser.add_argument("--profile", action="store_true", help="print where the time of one batch goes, and time nothing")
    options = parser.parse_args()
    print("\n".join(f"- {line}" for line in machine(torch.get_num_threads())), flush=True)
    if options.profile:
        for name in options.models:
            for dtype in options.dtypes:
                print(f"\n# {name} {dtype}")
                model = model_of(name, dtype, options.device)
                profile(model, segments(model, options.segments), options.device, options.batch_tokens)
        return
    found = measured(
        options.device, options.segments, options.batch_tokens, options.repeats, options.models, options.dtypes, options.checked
    )
    print(f"\n{table(found)}\n")
    for row in found:
        print(json.dumps(row.record()))


if __name__ == "__main__":
    main()
