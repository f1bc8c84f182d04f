"""The untrained control: embeddings are kept, and all other weights are redrawn, the same for the same seed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import headscope as hs
from headscope.errors import RunError
from headscope.models.loading.random import randomise


@pytest.fixture(scope="module")
def networks() -> dict[str, torch.nn.Module]:
    return {"trained": hs.load("mini").network, "random": hs.load("mini", random=0).network, "other": hs.load("mini", random=1).network}


def test_embeddings_are_kept_and_all_other_weights_are_redrawn(networks: dict[str, torch.nn.Module]) -> None:
    trained, random, other = (dict(networks[name].named_parameters()) for name in ("trained", "random", "other"))
    for name, parameter in trained.items():
        if "embeddings" in name:
            assert torch.equal(parameter, random[name]), name
        elif parameter.dim() > 1:
            assert not torch.equal(random[name], other[name]), name
            assert random[name].abs().max() <= 2 * 0.02 + 1e-6
            assert random[name].std() == pytest.approx(0.88 * 0.02, rel=0.05)  # a normal distribution truncated at two standard deviations
        else:
            assert torch.equal(random[name], torch.full_like(parameter, 0.0 if name.endswith("bias") else 1.0)), name


def test_the_same_seed_gives_the_same_weights(networks: dict[str, torch.nn.Module]) -> None:
    again = dict(hs.load("mini", random=0).network.named_parameters())
    assert all(torch.equal(parameter, again[name]) for name, parameter in networks["random"].named_parameters())


def test_the_signature_names_random_weights_and_they_do_not_find_relations() -> None:
    run = hs.run("mini", "sampler", ["relations"], weights="random", limit=30, replicates=0, gallery=0)
    assert "|weights:random|" in run.signature
    trained = hs.run("mini", "sampler", ["relations"], limit=30, replicates=0, gallery=0)
    chance, value = (found.results["relations_best"].where(label="all")["value"][0] for found in (run, trained))
    assert chance < 0.25 < 0.4 < value


def test_random_weights_are_refused_for_a_loaded_model() -> None:
    with pytest.raises(RunError, match="Load it with random="):
        hs.run(hs.load("mini"), "sampler", weights="random", limit=1, gallery=0)


def test_norms_that_add_one_to_their_weight_start_at_zero() -> None:
    class OnePlusNorm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((8,), 0.3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)) * (1 + self.weight)

    class Tiny(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.config = SimpleNamespace(initializer_range=0.02)
            self.norm, self.other = OnePlusNorm(), torch.nn.LayerNorm(8)
            self.relative_attention_bias = torch.nn.Embedding(4, 2)

    network = Tiny()
    before = network.relative_attention_bias.weight.clone()
    randomise(network)
    assert network.norm.weight.tolist() == [0] * 8
    assert network.other.weight.tolist() == [1] * 8
    assert not torch.equal(before, network.relative_attention_bias.weight)  # a position bias is not an embedding of the text
