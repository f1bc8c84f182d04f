"""Gates on every architecture: against output projections whose columns are multiplied by hand, against finite
differences, and in beam search.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from headscope.core.heads import HeadId
from headscope.errors import ModelError
from headscope.models import capture
from headscope.models.contexts import changed
from headscope.models.gates import gated, gates_without
from headscope.models.model import Model
from headscope.models.sites import find_sites
from helpers.architectures import ALL, BYPASS, build, inputs

# Where the output projections are: beside the attention module, in it, or, in models that bypass the interface, at a
# path with the number of the layer.
BESIDE = ("output.dense",)
WITHIN = ("out_proj", "o_proj", "out_lin", "c_proj", "o", "dense", "Wo")
BYPASSED = {"deberta-v2": "encoder.layer.{}.attention.output.dense", "mpnet": "encoder.layer.{}.attention.attn.o"}


def tiny(name: str) -> Model:
    network = build(name)
    return Model(name, network, cast("Any", None), *find_sites(network))


def projection(model: Model, number: int) -> torch.nn.Module:
    network, path = model.network, model.sites[number].module
    if model.name in BYPASS:
        return cast("torch.nn.Module", network.get_submodule(BYPASSED[model.name].format(number)))
    paths = [f"{path}.{name}" for name in WITHIN] + [f"{path.rpartition('.')[0]}.{name}" for name in BESIDE]
    found: list[torch.nn.Module] = [module for name, module in network.named_modules() if name in paths]
    assert len(found) == 1, path
    return found[0]


def multiplied(model: Model, gates: dict[int, torch.Tensor], batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The states of the model after its output projections are changed: weights that read a head are times its gate."""
    for number, gate in gates.items():
        module = projection(model, number)
        weight = cast("torch.Tensor", module.weight)
        transposed = type(module).__name__ == "Conv1D"
        wide = gate.repeat_interleave((weight.shape[0] if transposed else weight.shape[1]) // len(gate))
        weight.mul_(wide[:, None] if transposed else wide)
    with torch.no_grad(), capture.implementation(model.network, "eager"):
        return states(model, batch)


def states(model: Model, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    out: torch.Tensor = model.network(**batch, use_cache=False).last_hidden_state
    return out * (batch.get("decoder_attention_mask", batch["attention_mask"]))[:, :, None]


def random_gates(model: Model, seed: int) -> dict[int, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {n: torch.randint(0, 3, (site.heads,), generator=generator) / 2 for n, site in enumerate(model.sites)}


@pytest.mark.parametrize("name", [name for name in ALL if name != "albert"])  # its layers share one projection
def test_a_gate_multiplies_the_projection_columns_that_read_the_head(name: str) -> None:
    model = tiny(name)
    batch, gates = inputs(model.network), random_gates(model, 0)
    with torch.no_grad():
        before = states(model, batch)
        with gated(model, gates):
            found = states(model, batch)
        with gated(model, {}):
            torch.testing.assert_close(states(model, batch), before, rtol=1e-3, atol=1e-3)
        after = states(model, batch)
    assert not torch.allclose(found, before, atol=0.05)
    torch.testing.assert_close(after, before, rtol=0, atol=0)
    torch.testing.assert_close(found, multiplied(tiny(name), gates, batch), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["bert", "albert", "llama", "t5", "bart", "mpnet"])
def test_texts_of_a_batch_can_have_different_gates(name: str) -> None:
    model = tiny(name)
    batch = inputs(model.network)
    each = [random_gates(model, seed) for seed in range(3)]
    with torch.no_grad():
        with gated(model, {n: torch.stack([gates[n] for gates in each]) for n in range(len(model.sites))}):
            together = states(model, batch)
        for row, gates in enumerate(each):
            with gated(model, gates):
                torch.testing.assert_close(together[row], states(model, batch)[row], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "albert", "gpt2", "t5", "marian", "deberta-v2"])
def test_gradients_of_gates_equal_finite_differences(name: str) -> None:
    model = tiny(name)
    model.network.double()
    batch = inputs(model.network)
    torch.manual_seed(3)
    reading = torch.randn(states(model, batch).shape, dtype=torch.float64)

    def reads(gates: dict[int, torch.Tensor]) -> torch.Tensor:
        with gated(model, gates):
            return (states(model, batch) * reading).sum()

    gates = {n: torch.full((site.heads,), 0.7, dtype=torch.float64, requires_grad=True) for n, site in enumerate(model.sites)}
    found = torch.autograd.grad(reads(gates), list(gates.values()))
    # T5 normalises in float32, even if the model is float64.
    step, tolerance = (3e-4, 1e-2) if name == "t5" else (1e-5, 1e-6)
    with torch.no_grad():
        for number, gradient in enumerate(found):
            for head in range(model.sites[number].heads):
                ends = []
                for by in (step, -step):
                    moved = {n: gate.detach().clone() for n, gate in gates.items()}
                    moved[number][head] += by
                    ends.append(reads(moved))
                assert float(gradient[head]) == pytest.approx(
                    float(ends[0] - ends[1]) / (2 * step), rel=tolerance, abs=tolerance * float(found[number].abs().max())
                )
    assert min(float(gradient.abs().max()) for gradient in found) > 1e-3


def test_vectors_replace_the_part_that_a_gate_removes() -> None:
    model = tiny("bert")
    batch = inputs(model.network)
    kept: dict[int, torch.Tensor] = {}

    def keep(number: int, contexts: torch.Tensor) -> torch.Tensor:
        kept[number] = contexts.clone()
        return contexts

    with torch.no_grad(), changed(model, keep):
        states(model, batch)
    vectors = torch.arange(16.0).reshape(4, 4)
    gate = torch.tensor([1, 0.25, 0, 1])
    with torch.no_grad(), gated(model, {0: gate}, {0: vectors}), changed(model, keep):
        states(model, batch)
    seen: dict[int, torch.Tensor] = {}
    module = projection(model, 0)
    handle = module.register_forward_pre_hook(lambda _, args: seen.update({0: args[0].unflatten(-1, (4, 4))}))
    with torch.no_grad(), gated(model, {0: gate}, {0: vectors}):
        states(model, batch)
    handle.remove()
    torch.testing.assert_close(seen[0][:, :, 0], kept[0][:, :, 0])
    torch.testing.assert_close(seen[0][:, :, 1], kept[0][:, :, 1] / 4 + 0.75 * vectors[1])
    torch.testing.assert_close(seen[0][:, :, 2], vectors[2].expand(3, 9, 4))


def test_maps_of_a_gated_model_can_be_captured() -> None:
    model = tiny("bert")
    batch = inputs(model.network)
    plain: dict[int, torch.Tensor] = {}
    found: dict[int, torch.Tensor] = {}
    model.stream(batch, lambda index, maps, *_: plain.update({index: maps.clone()}))
    with gated(model, {0: torch.zeros(4)}):
        model.stream(batch, lambda index, maps, *_: found.update({index: maps.clone()}))
    other = tiny("bert")
    cast("torch.Tensor", projection(other, 0).weight).zero_()
    expected: dict[int, torch.Tensor] = {}
    other.stream(batch, lambda index, maps, *_: expected.update({index: maps.clone()}))
    torch.testing.assert_close(found[0], plain[0], rtol=0, atol=0)
    torch.testing.assert_close(found[1], expected[1])
    assert not torch.allclose(found[1], plain[1], atol=0.01)


def test_gates_apply_during_generation_with_beams_and_a_cache() -> None:
    from transformers import MarianConfig, MarianMTModel

    def marian() -> Model:
        torch.manual_seed(0)
        options: dict[str, Any] = {**ALL["marian"], "vocab_size": 60, "pad_token_id": 1, "init_std": 0.5, "forced_eos_token_id": None}
        whole = MarianMTModel(MarianConfig(**options)).eval().requires_grad_(False)
        return Model("marian", whole.base_model, cast("Any", None), *find_sites(whole.base_model), whole)

    model, batch = marian(), inputs(build("marian"))
    batch = {name: batch[name] for name in ("input_ids", "attention_mask")}
    options: dict[str, Any] = {"num_beams": 3, "do_sample": False, "max_new_tokens": 6, "min_new_tokens": 6}
    each = [random_gates(model, seed) for seed in range(3)]

    def generated(of: Model) -> torch.Tensor:
        assert of.whole is not None
        return cast("torch.Tensor", cast("Any", of.whole).generate(**batch, **options))

    with gated(model, {n: torch.stack([gates[n] for gates in each]) for n in range(len(model.sites))}):
        together = generated(model)
    alone = [marian() for _ in each]
    for row, gates in enumerate(each):
        multiplied(alone[row], gates, inputs(build("marian")))
        torch.testing.assert_close(generated(alone[row])[row], together[row], rtol=0, atol=0)
    assert len({tuple(row) for row in together.tolist()} | {tuple(row) for row in generated(model).tolist()}) > 3


def test_gates_without_named_heads_close_these_heads() -> None:
    model = tiny("bart")
    gates = gates_without(model, [HeadId.parse("2-1"), HeadId.parse("2-4"), HeadId.parse("cross/1-2")])
    names = {model.sites[number].name: gate.tolist() for number, gate in gates.items()}
    assert names == {"encoder/2": [0, 1, 1, 0], "cross/1": [1, 0]}
    with pytest.raises(ModelError, match=r"bart has no head decoder/1-3\. Its heads are: encoder/1 with 4"):
        gates_without(model, [HeadId.parse("decoder/1-3")])


def test_gates_that_do_not_fit_are_refused() -> None:
    model = tiny("bert")
    batch = inputs(model.network)
    for number, shape in ((0, (3,)), (2, (4,)), (-1, (4,)), (0, (1, 1, 4))):
        with pytest.raises(ModelError, match="gates of shape"), gated(model, {number: torch.ones(shape)}):
            pass
    with pytest.raises(ModelError, match="gates of 2 texts for a batch of 3"), gated(model, {0: torch.ones(2, 4)}):
        states(model, batch)
    with pytest.raises(ModelError, match="no vectors to replace the heads of encoder/1 with"), gated(model, {0: torch.ones(4)}, {}):
        pass
    other = Model("xlnet", torch.nn.Linear(1, 1), cast("Any", None), model.sites, "outputs")
    with pytest.raises(ModelError, match="no head can be switched off"), gated(other, {}):
        pass
