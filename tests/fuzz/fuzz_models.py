"""Model folders with one mutated file, and typed texts."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache, partial
from pathlib import Path

from fuzz_engine import Target
from fuzz_runs import header_shaped, tiny
from mutations import Mutator
from safetensors import safe_open

import headscope as hs
from headscope.core.heads import HeadId
from headscope.engine.typed_text import typed
from headscope.gallery.texts import look
from headscope.models.load import quietly
from headscope.models.prune import prune, save
from helpers.architectures import build
from helpers.families import FAMILIES

FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "model.safetensors.index.json", "pruned_heads.json")
TEXTS = ["The cats play.", "Ännchen läßt 猫 and 🐈‍⬛ “sit”—on…", "a\u0301 b\u200bc \u202e rtl \ufeff", "don't U.S.A. 3.14 x@y.z"]


@cache
def model_folder() -> Path:
    """A folder with a tiny pruned BERT and an index of its weights."""
    folder = Path(tempfile.mkdtemp(prefix="headscope-fuzz-")) / "model"
    tokenizer = FAMILIES["wordpiece"]()
    whole = folder.parent / "whole"
    with quietly():
        build("bert", vocabulary=len(tokenizer)).save_pretrained(whole)
    tokenizer.save_pretrained(whole)
    save(prune(hs.load(whole), [HeadId.parse("1-1"), HeadId.parse("2-3")]), folder)
    with safe_open(folder / "model.safetensors", framework="numpy") as file:
        names = list(file.keys())
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, "model.safetensors")})
    )
    return folder


def load(file: str, data: bytes, folder: Path) -> None:
    """Load a model folder in which one file is replaced, and run the model on a text."""
    path = folder / "model"
    shutil.copytree(model_folder(), path)
    (path / file).write_bytes(data)
    model = hs.load(path)
    look(model, typed(model, "the cat plays").encoded)


def read_typed(data: bytes, folder: Path) -> None:
    """View one text, or two texts separated by a form feed."""
    text, mark, second = data.decode("utf-8", "surrogateescape").partition("\f")
    model = tiny()
    reading = typed(model, text, second if mark else None, 40)
    found = look(model, reading.encoded)
    assert len(found) == model.layout.size
    view = hs.view(model, text[:500], second[:500] if mark else None, max_length=30)
    view.grids()


def targets() -> list[Target]:
    """The targets of this module. The first call builds a model."""
    folder = model_folder()
    json_shaped = Mutator.json
    return [
        *(
            Target(
                f"model/{file}",
                [(folder / file).read_bytes()],
                partial(load, file),
                shaped=header_shaped if file.endswith(".safetensors") else json_shaped,
                share=0.04,
            )
            for file in FILES
        ),
        Target("view", [text.encode() for text in TEXTS] + [b"one\ftwo"], read_typed, (b"\f", "\u2028".encode(), b"##s"), share=0.1),
    ]
