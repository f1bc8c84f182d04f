"""Sums and maxima of rows of maps, against numpy and scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import xlogy

from headscope.stats import rows
from headscope.stats.rows import spread

NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device: the Triton kernel is not run")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NO_CUDA)])
@pytest.mark.parametrize("block", [1, 1 << 20])
@pytest.mark.parametrize("keys", [1, 7, 300])
def test_sums_and_maxima_of_rows_equal_those_of_numpy_and_scipy(
    device: str, block: int, keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "BLOCK", block)
    maps = np.random.default_rng(keys).dirichlet(np.full(keys, 0.2), (5, 3, 4))
    maps[0, 0, 0] = 0
    maps[1, 1, 1] = np.eye(keys)[0]
    plogp, mass, most = (found.cpu() for found in spread(torch.from_numpy(maps).float().to(device)))
    assert_allclose(plogp, xlogy(maps, maps).sum(-1), atol=1e-5)
    assert_allclose(mass, maps.sum(-1), atol=1e-6)
    assert_allclose(most, maps.max(-1), atol=1e-6)
