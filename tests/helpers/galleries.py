"""Runs with a gallery: models, texts and measures for them, and the attention weights of gallery maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import headscope as hs
from headscope.core.document import Document, Sentence, Word
from headscope.corpora import Corpus, read
from headscope.models.model import Model
from headscope.results.gallery import Gallery
from helpers.architectures import build
from helpers.families import FAMILIES

MEASURES: dict[str, dict[str, Any]] = {"positions": {}, "tokens": {}, "entropy": {}, "relations": {}, "coreference": {"least": 5}}
DOCUMENTS = list(read("sampler"))[:5]
SENTENCES = ["The cat sat on a mat .", "A dog , the cats .", "The dog sat .", "On a mat the cat and a dog sat , the cat sat ."]
CORPUS = Corpus.of([Document(f"d{n}", (Sentence(tuple(map(Word, text.split()))),)) for n, text in enumerate(SENTENCES)])
Map = NDArray[np.float64]


def gallery_of(run: hs.Run) -> Gallery:
    """The gallery of a run; an error if there is none."""
    assert run.results.gallery is not None, run.results.manifest["dropped"]
    return run.results.gallery


def weights(map: NDArray[np.uint16]) -> Map:
    """The attention weights of a map in the format of a gallery."""
    return map / 65535


def load_small(tmp_path: Path, name: str, tokenizer: str) -> Model:
    """Load a small random model of an architecture, with the tokenizer of a family."""
    tokens = FAMILIES[tokenizer]()
    build(name, vocabulary=len(tokens)).save_pretrained(tmp_path / name)
    tokens.save_pretrained(tmp_path / name)
    return hs.load(tmp_path / name)
