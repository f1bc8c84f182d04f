"""Architectures that were once read wrongly, and one of each kind that must be refused. `make contract` tests all
architectures.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from tiny import CHOSEN, WINDOW, build_tiny, padded
from verdict import judge

from headscope.errors import ModelError
from headscope.models import capture
from headscope.models.dry_run import dry_inputs, small_windows
from headscope.models.sites import find_sites

EQUAL: dict[str, tuple[str, list[int]]] = {  # how maps are captured, and the layers that have maps
    "falcon": ("outputs", [0, 1, 2, 3]),
    "deepseek_v32": ("interface", [0, 1, 2, 3]),
    "glm_moe_dsa": ("interface", [0, 1, 2, 3]),
    "minimax_m3_vl_text": ("interface", [0, 1, 2, 3]),
    "diffllama": ("outputs", [0, 1, 2, 3]),  # its module calls its attention function twice
    "zamba2": ("interface", [1, 3]),  # one module computes attention for two layers
    "minimax": ("interface", [0, 2]),  # the other layers are linear, but transformers returns them, too
    "afmoe": ("interface", [0, 1, 2, 3]),  # its mask is a keyword argument
    "layoutlm": ("interface", [0, 1, 2, 3]),
}
REFUSED = {
    "squeezebert": "contain negative numbers",
    "longt5": "not a map of all pairs of tokens",
    "longformer": "not one weight for each pair of tokens",
    "led": "not one weight for each pair of tokens",
    "prophetnet": "not one weight for each pair of tokens",
    "yoso": "not a map of all pairs of tokens",
    "rwkv": "not a map of all pairs of tokens",
    "convbert": "change when a text is padded",
    "mamba": "yields no attention",
    "canine": "no embeddings of tokens",
    "clip": "no embeddings of tokens",
    "bros": "You have to specify bbox",
}


@pytest.mark.parametrize("name", EQUAL)
def test_maps_equal_those_of_a_model_loaded_with_eager_attention(name: str) -> None:
    verdict = judge(name)
    assert (verdict.state, verdict.why) == ("equal", "")
    how, layers = EQUAL[name]
    assert verdict.how == how
    assert [site.layer for site in verdict.sites] == layers
    assert {site.kind for site in verdict.sites} == {"encoder" if name == "layoutlm" else "decoder"}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_architectures_are_refused_with_a_reason(name: str) -> None:
    verdict = judge(name)
    assert verdict.state == "refused"
    assert REFUSED[name] in verdict.why


def test_block_sparse_attention_is_refused_with_the_remedy() -> None:
    for name in ("big_bird", "bigbird_pegasus"):
        model = build_tiny(name, None, attention_type="block_sparse")
        with pytest.raises(ModelError, match=r'attends to blocks of tokens.*"original_full"'):
            find_sites(model)


def test_a_row_attends_to_as_many_tokens_as_the_model_selects() -> None:
    model = build_tiny("deepseek_v32", None)
    sites, _ = find_sites(model)
    seen: list[int] = []
    capture.stream(model, sites, padded(model, "right"), lambda index, maps, *_: seen.append(int((maps[0, 0, -1] > 0).sum())))
    assert seen == [CHOSEN] * 4


def test_a_model_that_stays_on_sdpa_is_refused() -> None:
    model = build_tiny("falcon", "sdpa")
    with pytest.raises(ModelError, match=r'FalconModel attends by sdpa.*attn_implementation="eager"'):
        find_sites(model)


class FaultyModel:
    """A Llama whose eager attention is changed by `spoil` in the last layer, so that a check must fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, spoil: Any) -> None:
        from transformers.models.llama import modeling_llama

        original = modeling_llama.eager_attention_forward

        def attend(module: Any, *args: Any, **kwargs: Any) -> Any:
            output, weights = original(module, *args, **kwargs)
            return spoil(output, weights) if module.layer_idx == 3 else (output, weights)

        monkeypatch.setattr(modeling_llama, "eager_attention_forward", attend)
        self.model = build_tiny("llama", "eager")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda output, weights: (output, weights * 0.9), "sum to 0.9 to 0.9 instead of 1"),
        (lambda output, weights: (output, weights - 0.01), "negative numbers"),
        (lambda output, weights: (output, weights[..., :-1]), "not one weight for each pair"),
        (lambda output, weights: (output, torch.full_like(weights, 1 / weights.shape[-1])), "give weight to padding"),
        (lambda output, weights: (output, weights * torch.nan), "is NaN or infinite"),
    ],
)
def test_faulty_attention_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch, spoil: Any, why: str) -> None:
    model = FaultyModel(monkeypatch, spoil).model
    with pytest.raises(ModelError, match=why):
        find_sites(model)


def test_an_output_that_changes_when_maps_are_captured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = FaultyModel(monkeypatch, lambda output, weights: (output * (2 if capture._tap.get() else 1), weights)).model
    with pytest.raises(ModelError, match="output changes when its attention is captured"):
        find_sites(model)


def test_a_model_whose_texts_depend_on_their_batch_is_refused() -> None:
    model = build_tiny("llama", None)
    model.layers[0].register_forward_hook(lambda module, args, output: output + args[0].mean())
    with pytest.raises(ModelError, match="change when a text is padded, or when another text is in the batch"):
        find_sites(model)


def test_missing_layers_are_refused_unless_the_configuration_explains_them() -> None:
    model = build_tiny("llama", None)
    model.config.num_hidden_layers = 6
    with pytest.raises(ModelError, match="6 decoder layers by its configuration, but attention was found in 4"):
        find_sites(model)
    model.config.layer_types = ["full_attention"] * 4 + ["linear_attention"] * 2
    assert len(find_sites(model)[0]) == 4


def test_a_model_that_sdpa_computes_differently_is_set_to_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_tiny("llama", "sdpa")
    batch = padded(model, "right")
    find_sites(model)
    assert model.config._attn_implementation == "sdpa"
    registry = transformers.AttentionInterface._global_mapping
    sdpa = registry["sdpa"]
    monkeypatch.setitem(registry, "sdpa", lambda *args, **kwargs: (sdpa(*args, **kwargs)[0] * 2, None))
    find_sites(model)
    assert model.config._attn_implementation == "eager"
    torch.testing.assert_close(model(**batch).last_hidden_state, build_tiny("llama", "eager")(**batch).last_hidden_state)


def test_maps_of_the_last_layer_are_the_same_if_only_it_is_captured() -> None:
    model = build_tiny("switch_transformers", None)  # SDPA ignores its relative positions
    sites, _ = find_sites(model)
    batch, seen = padded(model, "right"), dict[int, list[torch.Tensor]]()
    for wanted in (frozenset(range(len(sites))), frozenset([len(sites) - 1])):
        capture.stream(model, sites, batch, lambda index, maps, *_: seen.setdefault(index, []).append(maps.clone()), wanted)
    torch.testing.assert_close(*seen[len(sites) - 1])


def test_windows_are_lowered_only_for_the_dry_run() -> None:
    model = build_tiny("mistral", None, sliding_window=4096)
    with small_windows(model), torch.inference_mode():
        calls, _ = capture.observe(model, dry_inputs(model))
        assert int((calls[0].weights[0, 0, -1] > 0).sum()) == 6
    assert model.config.sliding_window == 4096
    assert WINDOW < 6


def test_an_internal_error_is_not_reported_as_an_error_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    from headscope.models import sites

    monkeypatch.setattr(sites, "_of_calls", lambda *_: [].kind)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        find_sites(build_tiny("llama", None))


def test_models_of_images_and_sound_are_refused(tmp_path: Any) -> None:
    import headscope as hs

    for name, reads in (("vit", "pixel_values"), ("wav2vec2", "input_values"), ("dinov2", "pixel_values")):
        config = transformers.AutoConfig.for_model(name)
        config.save_pretrained(tmp_path / name)
        from safetensors.torch import save_file

        save_file({"nothing": torch.zeros(1)}, tmp_path / name / "model.safetensors")
        with pytest.raises(ModelError, match=f"reads {reads} .*, not text. headscope reads text models"):
            hs.load(tmp_path / name)


def test_a_dry_run_fits_models_with_few_positions() -> None:
    model = build_tiny("bart", None, max_position_embeddings=16)
    assert {name: tuple(tensor.shape) for name, tensor in dry_inputs(model).items() if name.endswith("ids")} == {
        "input_ids": (2, 12),
        "decoder_input_ids": (2, 10),
    }
    assert [site.kind for site in find_sites(model)[0]] == ["encoder"] * 4 + ["decoder", "cross"] * 4


def test_find_sites_restores_the_attention_of_every_part_of_a_model() -> None:
    model = build_tiny("gemma3", None)
    before = [(config, config._attn_implementation) for config in capture._with_parts(model.config)]
    assert len(before) == 3
    find_sites(model)
    assert all(config._attn_implementation == was == "sdpa" for config, was in before)
