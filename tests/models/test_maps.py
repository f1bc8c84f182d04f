"""Norm maps and value zeroing, compared with loops over pairs of tokens, on small models of many architectures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from headscope.core.maps import MAPS
from headscope.core.rows import Reach, RowRequest
from headscope.errors import ModelError
from headscope.models import fused
from headscope.models.maps import maps_of
from headscope.models.maps import value_zeroing as zeroing
from headscope.models.maps.base import AttentionMaps
from headscope.models.maps.norm import NormMaps, lengths, reweighted
from headscope.models.maps.value_zeroing import ValueZeroing
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.stats.rows import row_statistics
from helpers.architectures import ALL, build
from helpers.value_maps import plain_norms, plain_turns, text, tiny

FAMILIES = ["bert", "gpt2", "llama", "t5"]  # in llama, two heads share a value


def norm_maps(model: Model, inputs: dict[str, torch.Tensor]) -> dict[int, np.ndarray]:
    """Return the norm maps of one text per site, and check that recomputed rows are the same."""
    found: dict[int, np.ndarray] = {}

    def keep(site: int, weights: torch.Tensor, visible: torch.Tensor | None, again: Callable[[], Any] | None) -> None:
        assert again is not None
        found[site] = weights[0].numpy()
        np.testing.assert_allclose(again()(1, 2)[0], found[site][:, 1:2], rtol=1e-6, atol=1e-9)

    model.stream(inputs, keep, None, exchange=NormMaps(model).exchange)
    return found


def test_lengths_and_reweighted_rows_equal_values_worked_by_hand() -> None:
    # Two heads share values (a, b) of two features. The first head writes (a, b), the second (2a, 0).
    value = torch.tensor([[[[3.0, 4.0], [0.0, 1.0], [1.0, 0.0]]]])
    triangle = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 0.0]]])
    sizes = lengths(value, triangle)
    assert sizes.tolist() == [[[5, 1, 1], [6, 0, 2]]]
    weights = torch.tensor([0.5, 0.25, 0.25]).expand(1, 2, 1, 3)
    # Weights times lengths: 2.5, .25 and .25, which are 5/6, 1/12 and 1/12 of their sum; 3, 0 and .5, which are 6/7, 0
    # and 1/7.
    np.testing.assert_allclose(reweighted(weights, sizes)[0, :, 0], [[5 / 6, 1 / 12, 1 / 12], [6 / 7, 0, 1 / 7]], rtol=1e-6)
    assert not reweighted(torch.zeros(1, 2, 1, 3), sizes).any(), "a row without weight stays 0"
    sizes[0, 0, 1] = torch.inf
    assert reweighted(weights, sizes)[0, 0].isnan().all(), "a length that is not finite makes every column NaN"


@pytest.mark.parametrize("name", FAMILIES)
def test_norm_maps_equal_those_of_plain_loops(name: str) -> None:
    model = tiny(name)
    inputs = text(model)
    plain = plain_norms(model, name, inputs)[:, :-1].transpose(0, 1, 3, 2)  # layer, head, query, key
    expected = plain / plain.sum(-1, keepdims=True)
    found = norm_maps(model, inputs)
    encoder = [number for number, site in enumerate(model.sites) if site.kind == model.sites[0].kind]
    assert len(found) == len(model.sites)
    tolerance = 1e-5 if name in ("llama", "t5") else 1e-9  # these normalise or attend in float32 even if their weights are float64
    np.testing.assert_allclose(np.stack([found[number] for number in encoder]), expected, rtol=tolerance, atol=tolerance)
    for maps in found.values():
        np.testing.assert_allclose(maps.sum(-1), 1, rtol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_value_zeroing_equals_that_of_one_pass_per_token(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(name)
    inputs = text(model)
    maps = maps_of(model, "value-zeroing")
    assert isinstance(maps, ValueZeroing)
    every = frozenset(range(len(maps.sites)))
    assert {site.heads for site in maps.sites} == {1}
    expected = plain_turns(model, name, inputs)
    for tokens in (zeroing.TOKENS, 13, 1):  # all copies at once, two at a time, one by one
        monkeypatch.setattr(zeroing, "TOKENS", tokens)
        found = {site: one.numpy() for site, (one, _) in maps.of_text(inputs, every).items()}
        encoder = [found[number][0] for number, site in enumerate(maps.sites) if site.kind == maps.sites[0].kind]
        np.testing.assert_allclose(np.stack(encoder), expected, atol=1e-5)
        assert found.keys() == every
    for number, site in enumerate(maps.sites):
        np.testing.assert_allclose(found[number].sum(-1), 1, rtol=1e-6)
        if site.kind == "decoder":
            assert not np.triu(found[number][0], 1).any(), "later tokens have no influence"


@pytest.mark.parametrize("name", ALL)
def test_maps_of_every_architecture_are_verified_or_refused(name: str) -> None:
    network = build(name)
    model = Model("tiny", network, None, *find_sites(network))  # type: ignore[arg-type]
    for map_name in MAPS[1:]:
        if model.capture == "interface":
            assert maps_of(model, map_name).sites[-1].module == model.sites[-1].module
        else:
            with pytest.raises(ModelError, match=r"that can be verified: its attention is read from its outputs.* Use --map weights"):
                maps_of(model, map_name)
    assert type(maps_of(model)) is AttentionMaps


def test_norm_maps_with_an_unexpected_output_projection_are_refused() -> None:
    model = tiny("bert")
    model.network.encoder.layer[1].attention.output.dense.register_forward_pre_hook(lambda module, args: (args[0] * 1.0001,))
    with pytest.raises(ModelError, match=r"BertModel has no norm maps .* no linear map reads the outputs of the heads of encoder/2"):
        maps_of(model, "norm")
    maps_of(model, "value-zeroing")  # value zeroing runs the layer itself, so it is possible


def test_value_zeroing_of_a_layer_with_changing_outputs_is_refused() -> None:
    model = tiny("bert")
    factors = iter(range(1, 1000))
    model.network.encoder.layer[1].output.dense.register_forward_hook(lambda module, args, out: out * next(factors))
    with pytest.raises(ModelError, match=r"the layer of encoder/2 gives something else when it is run again\. Use --map weights"):
        maps_of(model, "value-zeroing")


def test_a_bfloat16_model_has_norm_maps_and_its_value_zeroing_is_refused() -> None:
    model = tiny("bert")
    expected = norm_maps(model, text(model))
    model.network.bfloat16()
    for site, maps in norm_maps(model, text(model)).items():
        np.testing.assert_allclose(maps, expected[site], atol=0.05)
    with pytest.raises(ModelError, match=r"lost in the rounding of bfloat16\. Use --dtype float32"):
        maps_of(model, "value-zeroing")


def test_fused_statistics_of_reweighted_maps_equal_those_of_the_maps() -> None:
    torch.manual_seed(0)
    query, key, factors = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.rand(2, 4, 5) * 9
    factors[0, 1, 2] = 0
    counts = torch.tensor([5, 3])
    members = (torch.arange(5)[:, None] == torch.tensor([0, 2])).float().expand(2, 5, 2)
    hidden = torch.ones(5, 5).triu(1).bool() | (torch.arange(5) >= counts[:, None, None])
    scores = query @ key.repeat_interleave(2, 1).mT * 0.3
    maps = reweighted(scores.masked_fill(hidden[:, None], -torch.inf).softmax(-1), factors)
    rows = torch.arange(5) < counts[:, None]
    expected = row_statistics(maps.masked_fill(~rows[:, None, :, None], 0), rows, members, (-1, 0))
    wide = fused.multiplied(query, key, 0.3, factors)
    found, _ = fused.statistics(*wide, 0.3, Reach(None, 0), (counts, counts), RowRequest(members, (-1, 0)))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
