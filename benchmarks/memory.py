"""The memory of a run (part d), by the length of its inputs and by the size of its corpus.

Every number comes from a separate process, started as `python benchmarks/memory.py length FORM LENGTH` or `... corpus
MEASURES SEGMENTS`, which prints megabytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import headscope as hs
from common import LENGTH, SURFACE, Row, bare, documents, runner, segments, untrained
from headscope.encoding.texts import Encoded
from headscope.models.capture import implementation
from headscope.models.load import load
from headscope.models.model import Model

LENGTHS = (128, 256, 512, 1024, 2048)
TOKENS = max(LENGTHS)  # of a batch, and of all texts of a process together
WITHOUT = tuple(name for name in SURFACE if name != "distances")
FORMS = {"without distances": WITHOUT, "with distances": SURFACE}
STATUS = Path("/proc/self/status")


def rows(quick: bool = False) -> list[Row]:
    """Peaks as ratios: to that of the bare pass, by length; to that of the smaller corpus, by size."""
    if not STATUS.exists():
        return [Row("d", "peak memory", None, note="this system has no /proc/self/status")]
    return [*_lengths(LENGTHS[:3] if quick else LENGTHS), *_sizes(50 if quick else 200, 200 if quick else 2000)]


def _lengths(lengths: Sequence[int]) -> list[Row]:
    names = ["bare", *FORMS, "output_attentions"] if "distances" in SURFACE else ["bare", "without distances", "output_attentions"]
    found = []
    for length in lengths:
        peaks = {name: _child("length", name, length) for name in names}
        texts = f"{TOKENS // length} texts of {length} tokens" if length < TOKENS else f"one text of {length} tokens"
        for name in names[1:]:
            form = "`output_attentions=True` and nothing else" if name == "output_attentions" else f"the surface pass {name}"
            note = f"{peaks[name]:,.0f} MB beyond the loaded model; the bare pass {peaks['bare']:,.0f}"
            found.append(Row("d", f"peak memory, {texts}: {form} / the bare pass", peaks[name] / peaks["bare"], note=note))
    return found


def _sizes(small: int, large: int) -> list[Row]:
    found = []
    for name, measures in FORMS.items():
        if name == "with distances" and "distances" not in measures:
            continue
        chosen = ",".join(measure for measure in measures if measure != "relations")  # these texts have no trees
        peaks = {count: _child("corpus", chosen, count) for count in (small, large)}
        found.append(
            Row(
                "d",
                f"peak memory of a run {name}, {large:,} segments / {small}",
                peaks[large] / peaks[small],
                most=1.05,
                note=f"{peaks[large]:,.0f} MB, libraries and model included",
            )
        )
    return found


def _child(*words: object) -> float:
    command = [sys.executable, __file__, *map(str, words), str(torch.get_num_threads())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)} failed:\n{done.stderr}")
    return float(done.stdout)


def length_peak(form: str, length: int) -> float:
    """The megabytes that a pass over texts of one length takes beyond the loaded model, which has the embedded one's
    size.
    """
    model = untrained(load(device="cpu"), max_position_embeddings=TOKENS)
    texts, short = segments(model, TOKENS // length, length), segments(model, 1, 32)
    work = _work(form, model)
    work(short)  # set-up and compilation do not count
    _forget_peak()
    before = _megabytes("VmRSS")
    work(texts)
    return _megabytes("VmHWM") - before


def _work(form: str, model: Model) -> Callable[[list[Encoded]], object]:
    if form == "bare":
        return lambda texts: bare(model, texts, TOKENS)
    if form == "output_attentions":
        return lambda texts: _all_maps(model, texts)
    run = runner(model, FORMS[form], TOKENS)
    return lambda texts: run(texts)


def _all_maps(model: Model, texts: list[Encoded]) -> object:
    with torch.inference_mode(), implementation(model.network, "eager"):
        return model.network(**model.inputs(texts), use_cache=False, output_attentions=True).attentions


def corpus_peak(measures: Sequence[str], count: int) -> float:
    """The megabytes of a whole run over a file, including libraries and model."""
    with tempfile.TemporaryDirectory() as folder:
        hs.run("mini", write_pairs(Path(folder), count), measures, max_length=LENGTH, device="cpu")
    return _megabytes("VmHWM")


def write_pairs(folder: Path, count: int) -> Path:
    """A file of pairs of paragraphs, each long enough for a segment of full length."""
    path = folder / "pairs.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for document in documents(count):
            a, b = (" ".join(sentence.text for sentence in paragraph) for paragraph in document.paragraphs())
            file.write(json.dumps({"id": document.id, "a": a, "b": b}) + "\n")
    return path


def _megabytes(field: str) -> float:
    """A field of the process's status, in megabytes. getrusage is not used, since its maximum is inherited from the
    parent process.
    """
    return int(STATUS.read_text(encoding="ascii").split(f"{field}:")[1].split()[0]) / 1024


def _forget_peak() -> None:
    """Reset the peak to the memory in use now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


if __name__ == "__main__":
    kind, what, number, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    print(length_peak(what, int(number)) if kind == "length" else corpus_peak(what.split(","), int(number)))
