"""The untrained control: embeddings stay, all else is drawn anew, the same for the same seed."""

from __future__ import annotations

import pytest
import torch

import headscope as hs
from headscope.errors import RunError


@pytest.fixture(scope="module")
def networks() -> dict[str, torch.nn.Module]:
    return {"trained": hs.load("mini").network, "random": hs.load("mini", random=0).network, "other": hs.load("mini", random=1).network}


def test_embeddings_stay_and_the_rest_does_not(networks: dict[str, torch.nn.Module]) -> None:
    trained, random, other = (dict(networks[name].named_parameters()) for name in ("trained", "random", "other"))
    for name, parameter in trained.items():
        if "embeddings" in name:
            assert torch.equal(parameter, random[name]), name
        elif parameter.dim() > 1:
            assert not torch.equal(random[name], other[name]), name
            assert random[name].abs().max() <= 2 * 0.02 + 1e-6
            assert random[name].std() == pytest.approx(0.88 * 0.02, rel=0.05)  # of a normal distribution cut at two deviations
        else:
            assert torch.equal(random[name], torch.full_like(parameter, 0.0 if name.endswith("bias") else 1.0)), name


def test_the_seed_decides(networks: dict[str, torch.nn.Module]) -> None:
    again = dict(hs.load("mini", random=0).network.named_parameters())
    assert all(torch.equal(parameter, again[name]) for name, parameter in networks["random"].named_parameters())


def test_a_run_with_random_weights_says_so_and_parses_nothing() -> None:
    run = hs.run("mini", "sampler", ["relations"], weights="random", limit=60, replicates=20)
    assert "|weights:random|" in run.signature
    trained = hs.run("mini", "sampler", ["relations"], limit=60, replicates=20)
    chance, value = (found.results["relations_best"].where(label="all")["value"][0] for found in (run, trained))
    assert chance < 0.25 < 0.4 < value


def test_a_loaded_model_is_not_redrawn() -> None:
    with pytest.raises(RunError, match="Load it with random="):
        hs.run(hs.load("mini"), "sampler", weights="random", limit=1)
