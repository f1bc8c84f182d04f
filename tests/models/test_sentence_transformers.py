"""Models of sentence_transformers, in memory and in folders of both layouts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headscope as hs
from headscope.errors import ModelError
from headscope.models.model import Model
from helpers.in_memory import maps_of, state_of


def test_a_model_in_memory_and_its_folder_have_the_maps_of_the_transformer(small_folder: Path, small_model: Model, tmp_path: Path) -> None:
    package: Any = pytest.importorskip("sentence_transformers", reason="sentence_transformers is not installed")
    model = package.SentenceTransformer(str(small_folder), device="cpu")
    before = state_of(model.transformers_model)
    loaded = hs.load(model)
    assert np.array_equal(maps_of(loaded), maps_of(small_model))
    assert "|object:SentenceTransformer|" in hs.run(model, "sampler", ["entropy"], limit=2, replicates=0, gallery=0).signature
    assert state_of(model.transformers_model) == before
    model.save(str(tmp_path / "saved"))
    assert np.array_equal(maps_of(hs.load(tmp_path / "saved")), maps_of(small_model))


def test_a_transformer_in_a_subfolder_is_read_and_invalid_modules_are_refused(
    small_folder: Path, small_model: Model, tmp_path: Path
) -> None:
    shutil.copytree(small_folder, tmp_path / "old" / "0_Transformer")
    parts = [{"idx": 0, "name": "0", "path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}]
    (tmp_path / "old" / "modules.json").write_text(json.dumps(parts))
    assert np.array_equal(maps_of(hs.load(tmp_path / "old")), maps_of(small_model))
    invalid: list[Any] = [[], [{**parts[0], "path": "../../elsewhere"}], [{**parts[0], "path": ""}], {}, [3]]
    for wrong in invalid:
        (tmp_path / "old" / "modules.json").write_text(json.dumps(wrong))
        with pytest.raises(ModelError, match=r"modules.json does not name a Transformer in the folder"):
            hs.load(tmp_path / "old")
