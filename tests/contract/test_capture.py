"""The contract with transformers: on all architectures, streamed maps equal those of eager `output_attentions=True`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from transformers import PreTrainedModel

from headscope.core.batch import Later
from headscope.errors import ModelError
from headscope.models import capture
from headscope.models.sites import find_sites
from helpers.architectures import ALL, BYPASS, DECODERS, ENCODERS, build, inputs


@pytest.fixture(params=list(ALL))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[name for name in ALL if name not in BYPASS])
def streamed(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def eager_maps(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> dict[str, tuple[torch.Tensor, ...]]:
    """The maps that transformers returns, without headscope, by kind of attention."""
    model.set_attn_implementation("eager")
    out = model(**batch, output_attentions=True, use_cache=False)
    if model.config.is_encoder_decoder:
        return {"encoder": out.encoder_attentions, "decoder": out.decoder_attentions, "cross": out.cross_attentions}
    return {"decoder" if type(model).__name__.startswith(DECODER_CLASSES) else "encoder": out.attentions}


DECODER_CLASSES = tuple(type(build(name)).__name__ for name in DECODERS)


def test_maps_equal_eager_output_attentions(name: str) -> None:
    model = build(name)
    batch = inputs(model)
    expected = eager_maps(build(name), batch)
    sites, how = find_sites(model)
    assert how == ("outputs" if name in BYPASS else "interface")
    assert {(site.kind, site.layer) for site in sites} == {(kind, n) for kind, maps in expected.items() for n in range(len(maps))}

    seen: dict[int, torch.Tensor] = {}
    if how == "interface":
        capture.stream(model, sites, batch, lambda index, maps, *_: seen.update({index: maps.clone()}))
    else:
        seen = dict(enumerate(maps for group in capture.from_outputs(model, batch)[0].values() for maps in group))
    for index, site in enumerate(sites):
        assert site.heads == seen[index].shape[1]
        torch.testing.assert_close(seen[index], expected[site.kind][site.layer], rtol=0, atol=0)


def test_maps_have_no_weight_on_padding_or_on_later_tokens(streamed: str) -> None:
    model = build(streamed)
    batch = inputs(model)
    sites, _ = find_sites(model)

    def check(index: int, maps: torch.Tensor, visible: torch.Tensor | None, _: object) -> None:
        site = sites[index]
        keys = batch["decoder_attention_mask"] if site.kind == "decoder" and "decoder_attention_mask" in batch else batch["attention_mask"]
        queries = (
            batch["attention_mask"] if site.kind == "encoder" or "decoder_attention_mask" not in batch else batch["decoder_attention_mask"]
        )
        valid = maps * queries[:, None, :, None]
        assert not (valid * (1 - keys[:, None, None, :])).any(), "weight on padding"
        if site.kind == "decoder":
            assert not valid.triu(1).any(), "weight on later tokens"
        if visible is None:
            assert site.kind != "decoder"
            assert keys.all(), "without a mask, no key may be hidden"
        else:
            seen = visible.expand(len(maps), -1, -1) & queries[:, :, None].bool()
            assert not valid.amax(1)[~seen].any(), "weight on a hidden position"
            assert (valid.amax(1) > 0)[seen].float().mean() > 0.9, "fewer than 90% of the visible positions have weight"
        sums = valid.sum(-1)[queries[:, None].expand(-1, maps.shape[1], -1).bool()]
        if streamed == "gpt_oss":
            assert (sums < 1).all(), "its sinks must take a part of every row"
        else:
            torch.testing.assert_close(sums, torch.ones_like(sums))

    capture.stream(model, sites, batch, check)


def test_layers_that_are_not_requested_do_not_change_the_others(streamed: str) -> None:
    model = build(streamed)
    batch = inputs(model)
    sites, _ = find_sites(model)
    all_maps: dict[int, torch.Tensor] = {}
    capture.stream(model, sites, batch, lambda index, maps, *_: all_maps.update({index: maps.clone()}))
    last = len(sites) - 1
    last_maps: dict[int, torch.Tensor] = {}
    capture.stream(model, sites, batch, lambda index, maps, *_: last_maps.update({index: maps.clone()}), frozenset([last]))
    assert list(last_maps) == [last]
    queries = batch["decoder_attention_mask"] if "decoder_attention_mask" in batch else batch["attention_mask"]
    rows = queries[:, None, :, None]
    # SDPA rounds differently from eager attention, and T5's unscaled logits enlarge the difference. A lost mask or bias
    # changes weights by 0.1 and more.
    torch.testing.assert_close(last_maps[last] * rows, all_maps[last] * rows, rtol=0, atol=5e-4)


def test_the_model_is_restored_after_an_exception() -> None:
    model = build("llama")
    model.set_attn_implementation("sdpa")
    sites, _ = find_sites(model)
    assert model.config._attn_implementation == "sdpa"

    def fail(index: int, *_: object) -> None:
        raise KeyError("a consumer that fails")

    with pytest.raises(KeyError):
        capture.stream(model, sites, inputs(model), fail)
    assert model.config._attn_implementation == "sdpa"
    assert capture._tap.get() is None
    assert model(**inputs(model)).last_hidden_state.shape == (3, 9, 16)


def test_sites_report_the_number_of_key_value_heads() -> None:
    sites, _ = find_sites(build("llama"))
    assert [(site.heads, site.kv_heads) for site in sites] == [(4, 2), (4, 2)]


def test_albert_has_two_layers_with_one_shared_module() -> None:
    sites, _ = find_sites(build("albert"))
    assert [site.layer for site in sites] == [0, 1]
    assert sites[0].module == sites[1].module


def test_the_contract_covers_at_least_20_architectures() -> None:
    assert len(ALL) - len(BYPASS) >= 20
    assert len(ENCODERS) >= 5


def test_a_model_without_attention_is_refused() -> None:
    import transformers

    config = transformers.AutoConfig.for_model("mamba", vocab_size=60, hidden_size=16, num_hidden_layers=2, state_size=4)
    with pytest.raises(ModelError, match="yields no attention"):
        find_sites(transformers.AutoModel.from_config(config).eval())


def test_recomputed_rows_equal_the_rows_of_the_maps(streamed: str) -> None:
    model = build(streamed)
    sites, _ = find_sites(model)
    batch = inputs(model)
    found: dict[int, tuple[torch.Tensor, Later]] = {}

    def keep(index: int, maps: torch.Tensor, visible: torch.Tensor | None, again: Callable[[], Later] | None) -> None:
        assert again is not None
        found[index] = maps.clone(), again()

    capture.stream(model, sites, batch, keep)
    assert len(found) == len(sites)
    for maps, rows in found.values():
        length = maps.shape[2]
        for start, stop in ((0, 1), (1, length - 1), (length - 1, length), (0, length)):
            torch.testing.assert_close(rows(start, stop), maps[:, :, start:stop], rtol=1e-5, atol=1e-6)


def test_a_model_whose_recomputed_rows_differ_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("bert")
    sites, _ = find_sites(model)
    monkeypatch.setattr(capture, "_rows", lambda *_: torch.zeros(()))

    def keep(index: int, maps: torch.Tensor, visible: torch.Tensor | None, again: Callable[[], Later] | None) -> None:
        assert again is not None
        again()

    with pytest.raises(ModelError, match="does not give the same attention for some rows"):
        capture.stream(model, sites, inputs(model), keep)
