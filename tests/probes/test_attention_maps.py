"""Maps for attention probes: between the words of sentences and what stands for the root, against transformers' own
attentions.
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


def plain(model: Model, text: Encoded, rows: str) -> np.ndarray:
    """Sums over the tokens attended to, means over (or the first of) those attending; start, end and words."""
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
def test_maps_are_those_of_the_model(tmp_path: Path, name: str, rows: str) -> None:
    model = loaded(tmp_path, name)
    texts = texts_of(model)
    maps = Maps(model, rows)  # type: ignore[arg-type]
    assert maps.kind == ("decoder" if name in ("gpt2", "llama") else "encoder")
    found = maps.of(texts)
    for text, own in zip(texts, found, strict=True):
        assert own.shape == (len(text.words) + SPECIALS, len(text.words) + SPECIALS, 12)
        np.testing.assert_allclose(own, plain(model, text, rows), atol=1e-5)
    one = Maps(model, rows, batch_tokens=1).of(texts)  # type: ignore[arg-type]
    for own, alone in zip(found, one, strict=True):
        torch.testing.assert_close(own, alone, rtol=0, atol=1e-5)
    assert maps.specials == {"gpt2": (False, False), "llama": (True, False)}.get(name, (True, True))


def test_what_is_kept_is_what_was_worked_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded(tmp_path, "bert")
    texts = texts_of(model)
    maps = Maps(model, batch_tokens=24)
    asked: list[int] = []
    work = maps.of

    def counted(some: list[Encoded]) -> list[torch.Tensor]:
        asked.append(len(some))
        return work(some)

    monkeypatch.setattr(maps, "of", counted)
    expected = work(texts)
    steps = [[3, 1], [0], [4, 2]]
    for limit, passes in ((1 << 30, 1), (10, 2)):
        asked.clear()
        store = Store(maps, texts, limit)
        assert store.keeps == (passes == 1)
        for _ in range(2):
            seen = []
            for step, found in store.ahead(steps):
                seen += list(step)
                for number, own in zip(step, found, strict=True):
                    torch.testing.assert_close(own, expected[number], rtol=0, atol=1e-5)
            assert seen == [3, 1, 0, 4, 2]
        assert sum(asked) == passes * len(texts)
        folder = None if store._folder is None else Path(store._folder.name)
        assert store.bytes == sum((len(text.words) + 2) ** 2 for text in texts) * 12 * 4
        store.close()
        assert folder is None or not folder.exists()
    assert not Store(maps, texts, 1 << 30, again=False).keeps
