"""Hidden states on disk: they equal the output of the model, and incomplete or damaged caches are completed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import ModelError, RunError
from headscope.models.hidden import hidden, hidden_shape
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.studies import hidden_states as module
from headscope.studies.hidden_states import hidden_states
from helpers.architectures import build
from helpers.families import FAMILIES, document

LINES = ("The probes read unbelievable states", "so they do", "Words are split into pieces and averaged again", "one")


def tiny(architecture: str, tokenizer: str, **options: Any) -> Model:
    tokens = FAMILIES[tokenizer]()
    network = build(architecture, vocabulary=len(tokens), **options)
    return Model(architecture, network, Tokenizer(tokens), *find_sites(network))


def encoded(model: Model) -> list[Encoded]:
    encoder = Encoder(model.tokenizer, decoder_start=model.decoder_start)
    return list(encoder.texts([document(f"d{number}", line) for number, line in enumerate(LINES)], Tally()))


def alone(model: Model, text: Encoded) -> Any:
    """The states of one text as transformers returns them, without padding."""
    inputs = {"input_ids": torch.from_numpy(text.ids)[None], "attention_mask": torch.ones(1, len(text), dtype=torch.long)}
    network: Any = model.network.get_encoder() if model.encoder_decoder else model.network
    with torch.inference_mode():
        return torch.stack(network(**inputs, output_hidden_states=True).hidden_states)[:, 0].numpy()


@pytest.fixture(scope="module")
def bert() -> Model:
    return tiny("bert", "wordpiece")


@pytest.mark.parametrize(("architecture", "tokenizer"), [("bert", "wordpiece"), ("gpt2", "gpt2"), ("t5", "t5"), ("mpnet", "wordpiece")])
def test_token_states_equal_the_output_of_transformers(architecture: str, tokenizer: str, tmp_path: Path) -> None:
    model = tiny(architecture, tokenizer)
    texts = encoded(model)
    found = hidden_states(model, texts, tmp_path, dtype="float32", batch_tokens=24)
    assert (len(found), found.layers, found.size) == (len(LINES), (0, 1, 2), 16)
    for number, text in enumerate(texts):
        np.testing.assert_allclose(found[number], alone(model, text), rtol=2e-4, atol=2e-4)


def test_a_word_is_the_mean_of_its_pieces(bert: Model) -> None:
    texts = encoded(bert)
    assert any(len(text.words) < len(text) - 2 for text in texts)  # some word has several pieces
    found = hidden_states(bert, texts, None, layers=[2, 0], level="word", dtype="float32")
    for number, text in enumerate(texts):
        whole = alone(bert, text)[[2, 0]]
        words = [[token for token, of in enumerate(text.word_of) if of == word] for word in range(len(text.words))]
        expected = np.stack([whole[:, pieces].mean(1) for pieces in words], axis=1)
        np.testing.assert_allclose(found[number], expected, rtol=2e-4, atol=2e-4)


def test_padded_batches_have_zeros_and_a_mask(bert: Model) -> None:
    texts = encoded(bert)
    found = hidden_states(bert, texts, None)
    batch, mask = found.padded([2, 0])
    assert batch.dtype == torch.float32
    assert batch.shape == (3, 2, len(texts[2]), 16)
    assert mask.sum(1).tolist() == [len(texts[2]), len(texts[0])]
    assert torch.equal(batch[:, 1, : len(texts[0])], torch.from_numpy(found[0].astype(np.float32)))
    assert not batch[:, ~mask].any()


def test_cached_states_are_not_computed_again(bert: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = encoded(bert)
    first = np.array(hidden_states(bert, texts, tmp_path).values)
    monkeypatch.setattr(module, "hidden", None)  # a forward pass would fail
    assert np.array_equal(hidden_states(bert, texts, tmp_path).values, first)
    with pytest.raises(TypeError):
        hidden_states(bert, texts[:2], tmp_path)  # other texts need another cache
    with pytest.raises(TypeError):
        hidden_states(bert, texts, tmp_path, level="word")


def test_interrupted_truncated_and_damaged_caches_are_completed(bert: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = encoded(bert)
    monkeypatch.setattr(module, "SHARD", 1)  # one shard per text
    computed: list[int] = []

    def counted(model: Model, read: list[Encoded]) -> Any:
        if len(computed) == 2:
            raise KeyboardInterrupt
        computed.extend(map(len, read))
        return hidden(model, read)

    expected = np.array(hidden_states(bert, texts, None).values)
    monkeypatch.setattr(module, "hidden", counted)
    with pytest.raises(KeyboardInterrupt):
        hidden_states(bert, texts, tmp_path)
    computed.append(0)
    assert np.array_equal(hidden_states(bert, texts, tmp_path).values, expected)
    assert computed == [len(texts[0]), len(texts[1]), 0, len(texts[2]), len(texts[3])]
    (data,), (sums,) = tmp_path.glob("*.states"), tmp_path.glob("*.sums")
    whole = data.read_bytes()
    data.write_bytes(whole[:-1])
    sums.write_text(sums.read_text() + "2 99")  # truncated while it was written
    assert np.array_equal(hidden_states(bert, texts, tmp_path).values, expected)
    assert computed[5:] == [len(texts[2]), len(texts[3])]
    data.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert np.array_equal(hidden_states(bert, texts, tmp_path).values, expected)
    assert computed[7:] == [len(texts[0])]


def test_progress_is_reported_per_shard_and_batches_do_not_change_states(bert: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = encoded(bert)
    monkeypatch.setattr(module, "SHARD", 1)
    reports: list[tuple[float | None, int, int]] = []
    one = hidden_states(bert, texts, None, dtype="float32", progress=lambda *report: reports.append(report))
    assert reports[-1] == (1.0, len(texts), sum(map(len, texts)))
    assert [texts for _, texts, _ in reports] == [1, 2, 3, 4]
    monkeypatch.setattr(module, "SHARD", 10**9)
    together = hidden_states(bert, texts, None, dtype="float32", batch_tokens=1000)
    np.testing.assert_allclose(one.values, together.values, rtol=2e-4, atol=2e-4)


def test_invalid_layers_folders_and_sizes_are_refused(bert: Model, tmp_path: Path) -> None:
    texts = encoded(bert)
    tokens = sum(map(len, texts))
    message = rf"hidden states of {tokens} tokens in 3 layers take .* MiB as float16, more than the limit of 0\.0 MiB\. Choose fewer"
    with pytest.raises(RunError, match=message):
        hidden_states(bert, texts, tmp_path, limit_bytes=tokens * 3 * 16 * 2 - 1)
    assert not list(tmp_path.iterdir())
    hidden_states(bert, texts, tmp_path, limit_bytes=tokens * 3 * 16 * 2)
    with pytest.raises(RunError, match=r"bert has no layer 3\. Its hidden states are those of layers 0 \(embeddings\) to 2"):
        hidden_states(bert, texts, tmp_path, layers=[0, 3])
    with pytest.raises(RunError, match="at least one text"):
        hidden_states(bert, [], tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot be written to .*file"):
        hidden_states(bert, texts, tmp_path / "file" / "under")
    large = tiny("gpt2", "gpt2")
    for parameter in large.network.parameters():
        parameter.mul_(1e3)
    with pytest.raises(RunError, match=r"the largest number in float16 is 65504\. Keep the states as float32"):
        hidden_states(large, encoded(large), None)


def test_a_model_that_pools_tokens_between_layers_is_refused(bert: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = type(bert.network).forward

    def pooled(*args: Any, **options: Any) -> Any:
        found = forward(*args, **options)
        found.hidden_states = (found.hidden_states[0], found.hidden_states[1][:, ::2])
        return found

    monkeypatch.setattr(type(bert.network), "forward", pooled)
    with pytest.raises(ModelError, match="BertModel does not give one vector per token in every layer"):
        hidden_shape(bert)


def test_the_embedded_model_has_13_layers_of_288_dimensions() -> None:
    assert hidden_shape(hs.load(device="cpu")) == (13, 288)
