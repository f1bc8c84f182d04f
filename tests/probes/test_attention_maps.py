"""Maps for attention probes, between the words of a sentence and the special tokens that represent the root, compared
with the attentions that transformers returns.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoded, Encoder
from headscope.models.capture import implementation
from headscope.models.model import Model
from headscope.studies.attention_probe.maps import SPECIALS, Maps, Store
from helpers.predicting import SENTENCES, loaded

DOCUMENTS = [Document(f"d{n}", (Sentence(tuple(map(Word, text.split()))),)) for n, text in enumerate(SENTENCES)]


def texts_of(model: Model) -> list[Encoded]:
    return list(Encoder(model.tokenizer, max_length=40, decoder_start=model.decoder_start).texts(DOCUMENTS, Tally()))


def plain_map(model: Model, text: Encoded, rows: str) -> np.ndarray:
    """The map of a text, with the positions start, end and words. Weights are summed over the key tokens of a word, and
    averaged over its query tokens or taken from the first.
    """
    with torch.no_grad(), implementation(model.network, "eager"):
        outputs = model.network(**model.inputs([text]), output_attentions=True)
    attentions = outputs.encoder_attentions if model.encoder_decoder else outputs.attentions
    maps = torch.cat(attentions, 1)[0].double().numpy()
    template = model.tokenizer.single
    start = [0] if template.before else []
    end = [len(text) - 1] if template.after else []
    groups = [start, end, *([t for t, w in enumerate(text.word_of) if w == word] for word in range(len(text.words)))]
    found = np.zeros((len(groups), len(groups), len(maps)))
    for i, own in enumerate(groups):
        for j, other in enumerate(groups):
            if own and other:
                part = maps[:, own][:, :, other].sum(2)
                found[i, j] = part[:, 0] if rows == "first" else part.mean(1)
    return found


@pytest.mark.parametrize(("name", "rows"), [("bert", "mean"), ("bert", "first"), ("gpt2", "mean"), ("llama", "mean"), ("bart", "mean")])
def test_maps_equal_the_attentions_of_transformers(tmp_path: Path, name: str, rows: str) -> None:
    model = loaded(tmp_path, name)
    texts = texts_of(model)
    maps = Maps(model, rows)  # type: ignore[arg-type]
    assert maps.kind == ("decoder" if name in ("gpt2", "llama") else "encoder")
    found = maps.of(texts)
    for text, own in zip(texts, found, strict=True):
        assert own.shape == (len(text.words) + SPECIALS, len(text.words) + SPECIALS, 12)
        np.testing.assert_allclose(own, plain_map(model, text, rows), atol=1e-5)
    one = Maps(model, rows, batch_tokens=1).of(texts)  # type: ignore[arg-type]
    for own, alone in zip(found, one, strict=True):
        torch.testing.assert_close(own, alone, rtol=0, atol=1e-5)
    assert maps.specials == {"gpt2": (False, False), "llama": (True, False)}.get(name, (True, True))


def test_stored_maps_equal_computed_maps_and_are_computed_once_if_they_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded(tmp_path, "bert")
    texts = texts_of(model)
    maps = Maps(model, batch_tokens=24)
    computed: list[int] = []
    compute = maps.of

    def counted(some: list[Encoded]) -> list[torch.Tensor]:
        computed.append(len(some))
        return compute(some)

    monkeypatch.setattr(maps, "of", counted)
    expected = compute(texts)
    steps = [[3, 1], [0], [4, 2]]
    for limit, passes in ((1 << 30, 1), (10, 2)):
        computed.clear()
        store = Store(maps, texts, limit)
        assert store.keeps == (passes == 1)
        for _ in range(2):
            seen = []
            for step, found in store.ahead(steps):
                seen += list(step)
                for number, own in zip(step, found, strict=True):
                    torch.testing.assert_close(own, expected[number], rtol=0, atol=1e-5)
            assert seen == [3, 1, 0, 4, 2]
        assert sum(computed) == passes * len(texts)
        folder = None if store._folder is None else Path(store._folder.name)
        assert store.bytes == sum((len(text.words) + 2) ** 2 for text in texts) * 12 * 4
        store.close()
        assert folder is None or not folder.exists()
    assert not Store(maps, texts, 1 << 30, again=False).keeps
