"""Attention that is not finite: the run ends with one line that names the layer and the remedy, and writes no table of
NaN.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope.core.document import Document, Sentence, Word
from headscope.corpora import Corpus
from headscope.errors import HeadscopeError, ModelError
from headscope.models.capture import NotFiniteError
from helpers.architectures import build
from helpers.families import FAMILIES

SENTENCES = ["The cat sat on a mat .", "A dog , the cats .", "The dog sat .", "On a mat the cat and a dog sat , the cat sat ."]
CORPUS = Corpus.of([Document(f"d{n}", (Sentence(tuple(map(Word, text.split()))),)) for n, text in enumerate(SENTENCES)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokens = FAMILIES["wordpiece"]()
    build("bert", vocabulary=len(tokens)).save_pretrained(tmp_path / "model")
    tokens.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def overflowing(model: hs.Model, layer: int, word: str) -> hs.Model:
    """The model with a layer whose queries are infinite at one word, as after an overflow of float16."""
    token = model.tokenizer.hf.convert_tokens_to_ids(word)
    ids: list[torch.Tensor] = []

    def before(module: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        ids[:] = args

    def query(module: torch.nn.Module, args: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
        return output.masked_fill((ids[0] == token)[..., None], torch.inf)

    model.network.get_input_embeddings().register_forward_pre_hook(before)
    model.network.encoder.layer[layer].attention.self.query.register_forward_hook(query)
    return model


def test_texts_that_overflow_are_named_with_the_layer_and_can_be_skipped(folder: Path, tmp_path: Path) -> None:
    model = overflowing(hs.load(folder), 1, "dog")
    with pytest.raises(HeadscopeError) as caught:
        hs.run(model, CORPUS, ["entropy"], out=tmp_path / "run", replicates=0, max_length=60)
    message = str(caught.value)
    assert "encoder/2 is NaN or infinite" in message
    assert all(f"d{n}" in message for n in (1, 2, 3)), message
    skipped = hs.run(model, CORPUS, ["entropy"], out=tmp_path / "run", replicates=0, max_length=60, resume=True, on_error="skip")
    assert set(skipped["entropy"].table.where(quantity="entropy")["n"]) == {1}


def test_the_remedy_for_half_precision_is_float32(folder: Path) -> None:
    model = overflowing(hs.load(folder, dtype="bfloat16"), 0, "dog")
    with pytest.raises(NotFiniteError, match=r"encoder/1 is NaN or infinite.*use --dtype float32"):
        hs.view(model, "the dog sat").grids()


def test_gradients_that_are_not_finite_are_refused(folder: Path) -> None:
    tokens = FAMILIES["wordpiece"]()
    from transformers import AutoModelForMaskedLM

    whole = AutoModelForMaskedLM.from_config(hs.load(folder).network.config)
    whole.save_pretrained(folder)
    tokens.save_pretrained(folder)
    model = overflowing(hs.load(folder, head=True), 1, "dog")
    with pytest.raises(HeadscopeError, match=r"encoder/[12] is NaN or infinite"):
        hs.run(model, CORPUS, ["saliency"], replicates=0, max_length=60)


def test_a_model_that_is_never_finite_is_refused_when_it_is_loaded(folder: Path) -> None:
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "layer_norm_eps": -1e9}))
    with pytest.raises(ModelError, match=r"layer encoder/1 is NaN or infinite. Check the model's config.json and its weights"):
        hs.load(folder)
