"""Switching off heads without repeating the layers below: the results equal those of one full pass per head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import headscope as hs
from headscope.models import prefix, restart
from headscope.models.answers import ask, asking_inputs
from headscope.models.gates import gated, gates_without, mean_contexts
from headscope.models.model import Model
from headscope.models.prefix import ablated
from headscope.models.restart import why_not
from helpers.predicting import TINY, encoded, loaded

# The classes of layers. How often each layer is run shows which outputs are reused.
LAYERS = ("BertLayer", "T5Block", "BartEncoderLayer", "BartDecoderLayer")


def naive(model: Model, texts: list[Any], gates: Any, replace: Any = None) -> torch.Tensor:
    """The logits of one full pass that computes all positions."""
    assert model.whole is not None
    targets = ask(model, texts)
    with torch.no_grad(), gated(model, gates, replace):
        logits: torch.Tensor = model.whole(**asking_inputs(model, texts, targets), use_cache=False).logits
    return logits if model.objective == "classes" else logits[torch.from_numpy(targets.texts), torch.from_numpy(targets.places)]


def cuts_of(model: Model, texts: int = 5) -> list[dict[int, torch.Tensor]]:
    """Gates that close nothing, every other head alone, whole sites, or heads of the first and the last site, and gates
    that differ between texts.
    """
    heads = [gates_without(model, [head]) for head in model.layout.ids()[::2]]
    sites = [{number: torch.zeros(site.heads)} for number, site in enumerate(model.sites)]
    last = len(model.sites) - 1
    pair = {0: torch.linspace(0, 1, model.sites[0].heads), last: torch.zeros(model.sites[last].heads)}
    own = {1: torch.linspace(0, 1, texts * model.sites[1].heads).reshape(texts, -1)}
    return [*heads[::-1], {}, *sites, pair, own]


@pytest.mark.parametrize("name", TINY)
def test_logits_equal_those_of_full_passes(tmp_path: Path, name: str) -> None:
    model = loaded(tmp_path, name, double=True)
    assert why_not(model) is None
    tolerance = 1e-5 if name == "t5" else 1e-11  # T5 normalises in float32
    small = (1,) if name == "bert" else ()  # one set of gates at a time
    for count, sizes in ((5, (*small, 400)), (1, (100,))):
        texts, cuts = encoded(model)[:count], cuts_of(model, count)
        expected = [naive(model, texts, gates) for gates in cuts]
        base = expected[cuts.index({})]
        assert all(
            not gates or not torch.allclose(logits, base, rtol=1e-4, atol=1e-4) for gates, logits in zip(cuts, expected, strict=True)
        )
        for tokens in sizes:
            found = dict(ablated(model, texts, cuts, batch_tokens=tokens))
            assert sorted(found) == list(range(len(cuts)))
            for number, logits in enumerate(expected):
                torch.testing.assert_close(found[number], logits, rtol=tolerance, atol=tolerance)
        full = dict(ablated(model, texts, cuts[:2], reuse=False))
        torch.testing.assert_close(full[1], expected[1], rtol=tolerance, atol=tolerance)


def test_logits_with_heads_replaced_by_means_equal_those_of_full_passes(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bart")
    texts = encoded(model)
    means = mean_contexts(model, [texts])
    cuts = cuts_of(model)[:-2]
    for number, logits in ablated(model, texts, cuts, replace=means):
        torch.testing.assert_close(logits, naive(model, texts, cuts[number], means), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["bert", "bart"])
def test_layers_below_are_not_run_again(tmp_path: Path, name: str) -> None:
    model = loaded(tmp_path, name)
    texts = encoded(model)
    rows: dict[str, int] = {}
    for path, module in model.network.named_modules():
        if type(module).__name__ in LAYERS:
            attention = module.get_submodule("attention" if name == "bert" else "self_attn")

            def count(module: Any, args: Any, kwargs: Any, output: Any, path: str = path) -> None:
                rows[path] = rows.get(path, 0) + len(output[0]) // len(texts)

            attention.register_forward_hook(count, with_kwargs=True)
    list(ablated(model, texts, [gates_without(model, [head]) for head in model.layout.ids()], batch_tokens=10**6))
    if name == "bert":  # one unchanged run, and one run per head of this layer and the layers below
        assert list(rows.values()) == [5, 9, 13]
    else:  # encoder layers of 4 heads, then decoder layers of 3 self-attention and 3 cross-attention heads
        assert list(rows.values()) == [5, 9, 13, 19, 25]


def test_the_model_is_left_unchanged_even_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded(tmp_path, "bert")
    texts = encoded(model)
    before = naive(model, texts, {})
    cuts = cuts_of(model)
    answers = ablated(model, texts, cuts)
    next(answers)
    torch.testing.assert_close(naive(model, texts, {}), before, rtol=0, atol=0)
    with torch.enable_grad():
        next(answers)
        assert not torch.is_inference_mode_enabled()

    def fail(*_: Any, **__: Any) -> None:
        raise KeyError

    with monkeypatch.context() as patch:
        patch.setattr(prefix, "_answers", fail)
        with pytest.raises(KeyError):
            list(answers)
    torch.testing.assert_close(naive(model, texts, {}), before, rtol=0, atol=0)
    assert not any("forward" in vars(module) for module in model.network.modules())


def test_a_model_without_a_list_of_layers_is_run_in_full_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded(tmp_path, "bert")
    texts, cuts = encoded(model), cuts_of(model)[:3]
    monkeypatch.setattr(restart, "layer_of", lambda network, path: None)
    assert why_not(model) == "the attention modules of BertModel are not in a list of layers"
    for number, logits in ablated(model, texts, cuts):
        torch.testing.assert_close(logits, naive(model, texts, cuts[number]), rtol=1e-5, atol=1e-5)
    monkeypatch.undo()
    monkeypatch.setattr(restart, "layer_of", lambda network, path: network.get_submodule("encoder.layer.0"))
    assert why_not(model) == "the layers of BertModel do not follow one another"
    monkeypatch.setattr(restart, "layer_of", lambda network, path: network)
    assert why_not(model) == "the layers of BertModel do not give hidden states"
    assert why_not(hs.load("mini", device="cpu")) is not None
