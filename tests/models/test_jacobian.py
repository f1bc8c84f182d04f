"""Influence between tokens, compared with autograd: one gradient per number of a layer's output."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import MeasureError, ModelError
from headscope.models.capture import implementation
from headscope.models.jacobian import linear, products, targets
from headscope.models.jacobian.blocks import Block
from headscope.models.jacobian.blocks import read as read_block
from headscope.models.jacobian.costs import BlockCosts, costs_of
from headscope.models.jacobian.flow import Flow, flow
from headscope.models.jacobian.layers import check_chain, drops, record
from headscope.models.jacobian.norms import NormReading
from headscope.models.jacobian.products import Pairs
from headscope.models.load import load
from headscope.models.model import Model
from helpers.architectures import ALL, DECODERS, build
from helpers.jacobians import VARIANTS, Jacobians, Wide, autograd, text, tiny, wrap

POST_LN = ["bert", "roberta", "xlm-roberta", "electra", "distilbert", "camembert", "ernie", "albert", "mpnet", "bart", "marian"]
PRE_LN = ["gpt2", "opt", "gpt_neox", "llama", "mistral", "qwen2", "m2m_100", "mbart"]
# Layers that are differentiated by products, with the tolerance of the comparison with autograd. Some of them normalise
# in float32, even if their weights are float64.
OTHER = {"gpt2": 1e-8, "deberta-v2": 1e-8, "mbart": 1e-8, "opt": 1e-6, "modernbert": 1e-6, "llama": 1e-5, "gemma2": 1e-5, "t5": 1e-6}
TEXTS = {"one": (1, 1), "two": (2, 2), "several": (5, 5), "padded": (4, 6)}
EVERY_LENGTH = ["bert", "mpnet", "gpt2", "gpt_neox", "llama", "mistral"]  # one architecture per layout of a block is tested on all texts


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *((name, shape) for name in EVERY_LENGTH for shape in TEXTS),
        *((name, "padded") for name in (*POST_LN, *PRE_LN, *VARIANTS) if name not in EVERY_LENGTH),
    ],
)
def test_the_closed_form_equals_the_jacobian(name: str, shape: str) -> None:
    model = tiny(name)
    inputs = text(model, *TEXTS[shape])
    with Wide():
        expected = autograd(model.network, inputs)
        for norm in ("frobenius", "sum", "mean", "spectral"):
            found = flow(model, inputs, ("G",), norm)
            assert (found.method["G"], found.errors["G"], found.notes) == ("exact", None, ())
            np.testing.assert_allclose(found.values["G"], Jacobians.norms(expected.layer, norm), rtol=1e-8, atol=1e-14)
    if shape == "padded":
        assert not found.values["G"][:, 4:, :4].any(), "padding has no influence"
        seen = found.values["G"][:, :4, :4] > 0
        assert (seen == (np.triu(np.ones((4, 4))) if model.sites[0].kind == "decoder" else np.ones((4, 4)))).all()


@pytest.mark.parametrize(
    ("name", "shape"), [("gpt2", "one"), ("gpt2", "two"), *((name, "several") for name in ("bert", "distilbert", *OTHER))]
)
def test_products_with_unit_vectors_equal_the_jacobian(name: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[flow.__module__], "read", lambda layer, heads: "no block is known")
    model = tiny(name)
    inputs = text(model, *TEXTS[shape])
    expected = autograd(model.network, inputs)
    for norm in ("frobenius", "sum", "mean", "spectral") if shape != "several" else ("frobenius", "spectral"):
        found = flow(model, inputs, ("G", "G*"), norm, method="exact")
        assert found.errors == {"G": None, "G*": None}
        for kind, jacobians in (("G", expected.layer), ("G*", expected.start)):
            wanted = Jacobians.norms(jacobians, norm)
            np.testing.assert_allclose(found.values[kind], wanted, rtol=OTHER.get(name, 1e-8), atol=OTHER.get(name, 1e-8) * wanted.max())


@pytest.mark.parametrize("name", ["bert", "gpt2", "gpt_neox", "llama"])
def test_a_chain_of_known_blocks_equals_the_jacobian(name: str) -> None:
    model = tiny(name)
    inputs = text(model, 7, 7)
    with Wide():
        expected = autograd(model.network, inputs)
        for norm in ("frobenius", "sum"):
            found = flow(model, inputs, ("G*",), norm, method="exact").values["G*"]
            np.testing.assert_allclose(found, Jacobians.norms(expected.start, norm), rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("name", ["bert", "distilbert", "gpt2", "bart"])
def test_the_seed_sets_dropout_for_all_kinds_and_the_model_is_left_unchanged(name: str) -> None:
    model = tiny(name)
    inputs = text(model, 5, 5)
    model.network.train()
    torch.manual_seed(11)
    expected = autograd(model.network, inputs)
    model.network.eval()
    before = torch.get_rng_state()
    for norm in ("frobenius", "sum"):
        found = flow(model, inputs, ("A", "G", "G*"), norm, method="exact", seed=11, mode="train")
        np.testing.assert_allclose(found.values["G"], Jacobians.norms(expected.layer, norm), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(found.values["G*"], Jacobians.norms(expected.start, norm), rtol=1e-8, atol=1e-12)
    other = flow(model, inputs, ("G", "norms"), "sum", seed=12, mode="train").values
    assert np.abs(other["G"] - found.values["G"]).max() > 1e-3 * found.values["G"].max()
    assert np.isfinite(other["norms"]).all()
    assert drops(model.network, inputs)
    assert not model.network.training
    assert torch.equal(torch.get_rng_state(), before)
    still = flow(model, inputs, ("A",)).values["A"]
    np.testing.assert_allclose(still.sum(1), 1, rtol=1e-6)
    if name != "bart":  # BART does not apply dropout to attention
        assert np.abs(found.values["A"].sum(1) - 1).max() > 0.01, "where dropout removes weights, the sum is not 1"
    sketched = flow(model, inputs, ("G*",), probes=8, seed=11, mode="train", method="sketch")
    wanted, errors = Jacobians.norms(expected.start, "frobenius"), sketched.errors["G*"]
    assert errors is not None
    assert np.abs((sketched.values["G*"] - wanted)[wanted > 0] / errors[wanted > 0]).mean() < 2.5


def test_dropout_that_cannot_be_repeated_is_refused() -> None:
    model = tiny("bert")
    draws = iter(range(1, 100))
    model.network.encoder.layer[1].register_forward_hook(lambda module, args, out: out * next(draws))
    with pytest.raises(ModelError, match=r"BertLayer did not drop the same numbers again .* Use mode=\"eval\""):
        flow(model, text(model, 4, 4), ("G",), mode="train")


def test_flow_does_not_depend_on_padding() -> None:
    model = tiny("gpt2")
    wide, bare = ({name: tensor[:, :width] for name, tensor in text(model, 4, 6).items()} for width in (6, 4))
    for norm in ("frobenius", "sum"):
        found, expected = (flow(model, inputs, norm=norm, method="exact").values for inputs in (wide, bare))
        for kind in ("A", "G", "G*"):
            np.testing.assert_allclose(found[kind][:, :4, :4], expected[kind], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("activation", ["relu", "gelu_new", "silu", "tanh", "quick_gelu"])
def test_the_closed_form_equals_the_jacobian_with_any_activation(activation: str) -> None:
    config = build("bert").config
    config.hidden_act = activation
    torch.manual_seed(0)
    network = AutoModel.from_config(config, dtype=torch.float64).eval().requires_grad_(False)
    for parameter in network.parameters():
        parameter.mul_(8)
    model = wrap(network)
    inputs = text(model, 5, 5)
    found = flow(model, inputs, ("G",))
    assert found.method["G"] == "exact"
    np.testing.assert_allclose(found.values["G"], Jacobians.norms(autograd(network, inputs).layer, "frobenius"), rtol=1e-8)


def test_flow_does_not_depend_on_the_sizes_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bert", "gpt2", "llama", "deberta-v2"):
        model = tiny(name)
        inputs = text(model, 7, 7)
        for norm in ("frobenius", "spectral", "sum"):
            with monkeypatch.context() as small, Wide():
                expected = flow(model, inputs, norm=norm, probes=4)
                small.setattr(targets, "HELD", 9000)  # enough for three targets
                small.setattr(products, "HELD", 7 * 16 * 10)
                small.setattr(products, "CHUNK", 7 * 16 * 3)
                found = flow(model, inputs, norm=norm, probes=4)
            for kind in ("A", "G", "G*"):
                np.testing.assert_allclose(found.values[kind], expected.values[kind], rtol=1e-10)


def test_reported_errors_of_sketches_equal_their_actual_errors() -> None:
    model = tiny("gpt2")
    inputs = text(model, 7, 7)
    exact = flow(model, inputs, method="exact").values
    drawn = [flow(model, inputs, ("G", "G*"), probes=12, method="sketch", seed=100 * seed) for seed in range(60)]
    for kind in ("G", "G*"):
        assert {found.method[kind] for found in drawn} == {"sketch"}
        values = np.stack([found.values[kind] for found in drawn])
        errors = np.stack([found.errors[kind] for found in drawn])  # type: ignore[misc]
        seen = exact[kind] > 0
        assert not values[:, ~seen].any()
        assert not errors[:, ~seen].any()
        np.testing.assert_allclose((values**2).mean(0)[seen], exact[kind][seen] ** 2, rtol=0.25)  # squared values are unbiased
        ratio = values.std(0, ddof=1)[seen] / errors.mean(0)[seen]
        assert 0.85 < np.median(ratio) < 1.2
        assert ((values - exact[kind])[:, seen] ** 2).mean() ** 0.5 < 0.2 * exact[kind].max()
    again = flow(model, inputs, ("G", "G*"), probes=12, method="sketch", seed=100)
    assert all(np.array_equal(again.values[kind], drawn[1].values[kind]) for kind in ("G", "G*"))


def test_flow_is_exact_with_as_many_probes_as_features() -> None:
    model = tiny("deberta-v2")
    found = flow(model, text(model, 3, 3), probes=16)
    assert found.method == {"A": "exact", "G": "exact", "G*": "exact"}


@pytest.mark.parametrize("name", ALL)
def test_every_architecture_has_attention_and_both_kinds_of_influence(name: str) -> None:
    model = wrap(build(name))
    inputs = text(model, 5, 5)
    with implementation(model.network, "eager"):
        out = model.network(**inputs, output_attentions=True, use_cache=False)
    maps = out.encoder_attentions if model.encoder_decoder else out.attentions
    found = flow(model, inputs, probes=3)
    np.testing.assert_allclose(found.values["A"], [layer[0].double().mean(0).T for layer in maps], rtol=1e-6)
    for kind in ("A", "G", "G*"):
        values = found.values[kind]
        assert values.shape == (2, 5, 5)
        assert np.isfinite(values).all()
        assert kind == "A" or (np.diagonal(values, axis1=1, axis2=2) > 0).all()
        if name in DECODERS:
            assert not np.tril(values, -1).any(), "a later token has no influence on an earlier one"
    assert found.method["G"] == ("exact" if name in (*POST_LN, *PRE_LN) else "sketch")
    assert any("computed backwards" in note for note in found.notes) == (name == "gpt_oss")  # its experts do not support forward mode
    # G* of the first layer equals G of the first layer: its input is the embeddings.
    if found.method["G"] == "exact":
        first = flow(model, inputs, ("G*",), method="exact").values["G*"][0]
        np.testing.assert_allclose(first, found.values["G"][0], rtol=1e-3, atol=1e-5 * first.max())


def test_a_block_that_differs_from_its_known_form_is_sketched() -> None:
    model = tiny("bert")
    inputs = text(model, 4, 4)
    hook = model.network.encoder.layer[1].attention.output.register_forward_hook(lambda module, args, out: out * 1.01)
    found = flow(model, inputs, ("G",), probes=4)
    assert found.method["G"] == "sketch"
    assert found.errors["G"] is not None
    assert found.notes[0].startswith("G: BertLayer rebuilt from its parts differs from the model by ")
    hook.remove()
    model.network.encoder.layer[1].attention.output.dense = torch.nn.Identity()
    assert "BertLayer is not built as expected" in flow(model, inputs, ("G",), probes=4).notes[0]
    model = tiny("gpt2")
    model.network.wte.weight[:, 3] += 3000  # a state far larger than what a block adds to it
    assert flow(model, inputs, ("G",), probes=4).method["G"] == "exact"
    model.network.h[1].attn.register_forward_hook(lambda module, args, out: (out[0] * 1.01, *out[1:]))
    assert flow(model, inputs, ("G",), probes=4).notes[0].startswith("G: GPT2Block rebuilt from its parts differs from the model by ")
    model = tiny("deberta-v2")
    assert flow(model, inputs, ("G",), probes=4).notes == (
        "G: DebertaV2Layer is not a known block",
        "G: sketched with 4 probes per layer",
    )


def test_exact_flow_of_a_bfloat16_model_is_close_to_that_in_float64() -> None:
    for name, kind in (("bert", "G"), ("gpt2", "G"), ("gpt2", "G*")):
        model, inputs = tiny(name), text(tiny(name), 5, 5)
        model.network.bfloat16()
        found = flow(model, inputs, (kind,), method="exact")  # type: ignore[arg-type]
        assert found.method[kind] == "exact"
        expected = flow(wrap(model.network.double()), inputs, (kind,), method="exact").values[kind]  # type: ignore[arg-type]
        seen = expected > 1e-3 * expected.max()
        assert np.median(np.abs(found.values[kind][seen] / expected[seen] - 1)) < 0.1


def test_backward_products_equal_forward_products() -> None:
    model = tiny("gpt2")
    with implementation(model.network, "eager"):
        layers = record(model.network, model.sites, text(model, 5, 5))
        reading = NormReading.make("frobenius", layers[0].states, None)
        for one, other in zip(products.forwards(layers, reading), products.backwards(layers, reading), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("name", ["bert", "distilbert", "mpnet", "bart", "gpt2", "gpt_neox", "llama", "mbart", "opt-post"])
def test_products_of_known_blocks_equal_those_of_autograd_in_both_directions(name: str) -> None:
    model = tiny(name)
    for shape in (TEXTS["one"], TEXTS["padded"]):
        inputs = text(model, *shape)
        with implementation(model.network, "eager"), Wide():
            sites = [site for site in model.sites if site.kind == model.sites[0].kind]
            layers = record(model.network, sites, inputs)
            known = [read_block(layer, site.heads) for layer, site in zip(layers, sites, strict=True)]
            rows = torch.randn(40, *layers[0].states.shape, dtype=torch.float64)
            for layer, block in zip(layers, known, strict=True):
                assert isinstance(block, Block)
                expected = products.push(layer, rows)
                torch.testing.assert_close(linear.push(block, rows, 900), expected, rtol=1e-9, atol=1e-12)
                with targets.held(block):
                    torch.testing.assert_close(linear.push(block, rows, 900), expected, rtol=1e-9, atol=1e-12)
                torch.testing.assert_close(linear.pull(block, rows, 9000), products.pull(layer, rows), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama", "llama-heads", "mistral", "opt-post", "bert"])
def test_skipping_the_tokens_before_a_source_does_not_change_products(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows begin at different tokens, also within a chunk, and some rows end before the text does."""
    monkeypatch.setattr(linear, "FEWEST", 3)
    model = tiny(name)
    starts = [6, 6, 2, 0, 0, 0, 5, 1, 3, 3, 4]
    with implementation(model.network, "eager"), Wide():
        layers = record(model.network, model.sites, text(model, 7, 7))
        for layer, site in zip(layers, model.sites, strict=True):
            block = read_block(layer, site.heads)
            assert isinstance(block, Block)
            assert block.causal == (name != "bert")
            rows = torch.randn(len(starts), *layer.states.shape, dtype=torch.float64)
            for row, start in zip(rows, starts, strict=True):
                row[:start] = 0
            expected = products.push(layer, rows)
            for stack in (nullcontext(), targets.held(block)):
                with stack:
                    torch.testing.assert_close(linear.push(block, rows, 10**6, starts), expected, rtol=1e-9, atol=1e-12)
                    if block.causal:
                        shorter = linear.push(block, rows[:, :5], 10**6, [min(start, 4) for start in starts])
                        torch.testing.assert_close(shorter, expected[:, :5], rtol=1e-9, atol=1e-12)


def test_matrices_are_worthwhile_above_a_number_of_rows_worked_by_hand() -> None:
    """A block of BERT's shape takes 12d² multiplications per row through its parts, 5d² per row through O and P, and
    5d³ for O and P. With a gate, three heads per key and 8/3 d features inside, it takes 32/3 d², 11/3 d² and 11/3 d³.
    """
    bert = BlockCosts(size=12, inner=12, shared=1, wide=48, maps=2)
    assert (bert.row(0, False), bert.row(0, True), bert.row(10, True)) == (12 * 144, 5 * 144, 5 * 144 + 40 * 12)
    assert (bert.matrices, bert.exact(0), bert.exact(10)) == (5 * 12**3, 2 * 12**3, 2 * 12**3 + 30 * 12**2)
    assert not bert.worthwhile(12 * 5 / 7)
    assert bert.worthwhile(12 * 5 / 7 + 0.1)
    smol = costs_of(build("llama", hidden_size=18, num_attention_heads=9, num_key_value_heads=3, intermediate_size=48))
    assert smol == BlockCosts(size=18, inner=18, shared=3, wide=48, maps=3)
    assert smol.row(0, True) == pytest.approx(11 / 3 * 18**2)
    assert smol.worthwhile(18 * 11 / 21 + 0.1)
    assert not smol.worthwhile(18 * 11 / 21 - 0.1)
    assert costs_of(build("gpt2")) == BlockCosts(size=16, inner=16, shared=1, wide=64, maps=2)
    assert costs_of(build("deberta-v2")) is None


def test_unknown_settings_and_unusable_layers_are_refused() -> None:
    model = tiny("bert")
    inputs = text(model, 4, 4)
    for options, message in (
        ({"kinds": ("A", "B")}, "kind 'B' is unknown. Use one of A, G, G\\*, rollout, maxflow, norms"),
        ({"norm": "nuclear"}, "norm 'nuclear' is unknown. Use one of frobenius, sum, mean, spectral"),
        ({"method": "guess"}, "method 'guess' is unknown. Use one of auto, exact, sketch"),
        ({"mode": "test"}, "mode 'test' is unknown. Use one of eval, train"),
        ({"probes": 1}, "1 probes give no standard error. Use at least 2"),
    ):
        with pytest.raises(MeasureError, match=message):
            flow(model, inputs, **options)
    layers = record(model.network, model.sites, inputs)
    with pytest.raises(ModelError, match=r"the input of layer 2 of this model is not the output of layer 1\. G\* needs"):
        check_chain([layers[1], layers[0]])
    model.network.encoder.layer.append(model.network.encoder.layer[0])
    with pytest.raises(ModelError, match=r"no list of 5 layers .* was found in BertModel\. .* attention alone"):
        record(model.network, [model.sites[0]] * 5, inputs)


@pytest.fixture(scope="module")
def sentence() -> tuple[Model, Encoded]:
    model = load(device="cpu")
    texts = Encoder(model.tokenizer).texts(read("sampler"), Tally())
    return model, next(text for text in texts if len(text.words) == 6)


def test_flow_of_the_embedded_model_in_float32_is_close_to_that_in_float64(sentence: tuple[Model, Encoded]) -> None:
    model, words = sentence
    found: Flow = flow(model, words, ("A", "G"))
    n = len(words)
    assert found.values["G"].shape == (12, n, n)
    np.testing.assert_allclose(found.values["A"].sum(1), 1, rtol=1e-5)  # the attention of each target sums to 1 over its sources
    wide = load(device="cpu")
    wide.network.double()
    np.testing.assert_allclose(found.values["G"], flow(wide, words, ("G",)).values["G"], rtol=1e-4)
    own = np.diagonal(found.values["G"], axis1=1, axis2=2)
    assert (own > np.median(found.values["G"], axis=1)).all(), "the residual connection raises a token's influence on itself"


@pytest.mark.parametrize(("name", "norm"), [("bert", "frobenius"), ("bert", "spectral"), ("llama", "frobenius")])
def test_flow_of_some_pairs_equals_that_of_all_pairs(name: str, norm: Any) -> None:
    """G of some targets and G* of some sources, sketched or not, equal those of the whole matrices. All other entries
    are 0. In a decoder, G* ends at the last requested token.
    """
    model = tiny(name)
    inputs = text(model, 7, 7)
    whole = flow(model, inputs, ("A", "G", "G*"), norm, probes=4, seed=3)
    some = flow(model, inputs, ("A", "G", "G*"), norm, probes=4, seed=3, pairs=Pairs([2, 5], [4]))
    np.testing.assert_array_equal(some.values["A"], whole.values["A"])
    np.testing.assert_allclose(some.values["G"][:, :, 4], whole.values["G"][:, :, 4], rtol=1e-6)
    last = 7 if name == "bert" else 6
    np.testing.assert_allclose(some.values["G*"][:, [2, 5], :last], whole.values["G*"][:, [2, 5], :last], rtol=1e-5)
    assert not some.values["G*"][:, :, last:].any()
    assert not some.values["G"][:, :, [0, 1, 2, 3, 5, 6]].any()
    assert not some.values["G*"][:, [0, 1, 3, 4, 6]].any()
    assert (some.errors["G*"] is None) == (norm == "spectral")


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_g_computed_with_g_star_equals_g_computed_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrices of a block that both need are computed once, and no number changes."""
    model = tiny(name)
    inputs = text(model, 6, 6)
    made: list[bool] = []
    after = targets.Targets.after

    def recorded(some: targets.Targets) -> Any:
        made.append(targets._HELD in some.block.__dict__)
        return after(some)

    monkeypatch.setattr(targets.Targets, "after", recorded)
    both = flow(model, inputs, ("G", "G*"), probes=8, seed=3)
    assert made == [False, True] * len(both.values["G"])  # computed once, then reused
    np.testing.assert_array_equal(both.values["G"], flow(model, inputs, ("G",), probes=8, seed=3).values["G"])
    for known, tolerance in ((True, 0.0), (False, 1e-4)):  # G* alone: by the same matrices, and by products with the layer
        monkeypatch.setattr(linear, "worthwhile", lambda *args, known=known: known)
        np.testing.assert_allclose(both.values["G*"], flow(model, inputs, ("G*",), probes=8, seed=3).values["G*"], rtol=tolerance)
