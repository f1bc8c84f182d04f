"""Mean outputs of heads, over words only and independent of batches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope.core.batch import WORD
from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.models.contexts import changed
from headscope.models.gates import gated, mean_contexts
from helpers.predicting import encoded, loaded


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "marian"])
def test_mean_outputs_are_means_over_words_only(tmp_path: Path, name: str) -> None:
    model = loaded(tmp_path, name)
    texts = encoded(model)
    given: dict[int, list[torch.Tensor]] = {}
    for text in texts:  # one at a time, token by token

        def keep(number: int, contexts: torch.Tensor, text: Encoded = text) -> torch.Tensor:
            read = text if model.sites[number].kind == "encoder" or text.target is None else text.target
            given.setdefault(number, []).extend(contexts[0, at] for at, role in enumerate(read.roles) if role == WORD)
            return contexts

        with torch.no_grad(), changed(model, keep):
            model.network(**model.inputs([text]), use_cache=False)
    means = mean_contexts(model, [texts[:2], texts[2:]])
    assert list(means) == list(range(len(model.sites)))
    for number, rows in given.items():
        torch.testing.assert_close(means[number], torch.stack(rows).mean(0), rtol=1e-4, atol=1e-5)
    with torch.no_grad(), gated(model, {0: torch.zeros(4)}, means):
        model.network(**model.inputs(texts), use_cache=False)


def test_mean_outputs_of_no_texts_are_refused() -> None:
    with pytest.raises(ModelError, match="no words to average over"):
        mean_contexts(hs.load("mini", device="cpu"), [])
