"""How models and results are shown: one line as a repr, sentences when printed, HTML in a notebook."""

from __future__ import annotations

import re

import numpy as np
import pytest

import headscope as hs
from headscope.core.heads import HeadLayout, Kind, Site
from headscope.models.model import Model

RANDOM = np.random.default_rng(0)
TOKENS = ["[CLS]", "a", "b", "[SEP]"]


@pytest.fixture(scope="module")
def run() -> hs.Run:
    texts = [RANDOM.dirichlet(np.ones(4), (2, 3, 4)) for _ in range(3)]
    return hs.measure(texts, [TOKENS] * 3, ["tokens", "entropy"], documents=["x", "y", "z"])


def layout(**heads: list[int]) -> HeadLayout:
    """A layout with the given number of heads per layer of each kind."""
    kinds: dict[str, Kind] = {"encoder": "encoder", "decoder": "decoder", "cross": "cross"}
    return HeadLayout(
        tuple(Site(kinds[kind], layer, number, number, "") for kind, numbers in heads.items() for layer, number in enumerate(numbers))
    )


def test_a_model_has_a_repr_of_one_line_and_html(mini: Model, small_model: Model) -> None:
    assert repr(mini) == "Model('mini', BertModel, 12 layers × 12 heads, float32, cpu)"
    assert re.fullmatch(r"Model\('.*small', \w+, 2 layers × 2 heads, float32, cpu\)", repr(small_model))
    page = mini._repr_html_()
    size = sum(weights.numel() for weights in mini.network.state_dict().values()) / 1e6
    for part in (f"BertModel, {size:.1f} million parameters", "12 layers × 12 heads", "256 tokens", "float32 on cpu"):
        assert part in page, part


def test_a_layout_spells_out_layers_and_heads() -> None:
    assert layout(encoder=[12] * 12).spelled() == "12 layers × 12 heads"
    assert layout(decoder=[4]).spelled() == "1 layer × 4 heads"
    assert layout(encoder=[12, 7, 1]).spelled() == "3 layers, 20 heads"
    both = layout(encoder=[8] * 6, decoder=[8] * 6, cross=[8] * 6)
    assert both.spelled() == "encoder 6 layers × 8 heads + decoder 6 layers × 8 heads + cross 6 layers × 8 heads"


def test_a_run_and_its_measures_have_a_repr_text_and_html(run: hs.Run) -> None:
    assert repr(run) == "Run(given maps: tokens, entropy)"
    assert repr(run["tokens"]) == f"Measured('tokens' of given maps: {len(run['tokens'].table)} rows)"
    assert str(run).startswith(f"Run({run.signature})")
    assert str(run["tokens"]).endswith(repr(run["tokens"].table))
    page = run._repr_html_()
    assert "Run of given maps, 2 layers × 3 heads" in page
    assert all(f">{name}</td>" in page for name in run.results)
    assert "tokens of given maps" in run["tokens"]._repr_html_()


def test_a_run_shows_its_warnings() -> None:
    warned = hs.run("mini", "sampler", ["entropy"], limit=1, replicates=0, gallery=0)
    assert repr(warned) == "Run(mini on sampler: entropy)"
    warned.results.manifest = {**warned.results.manifest, "warnings": ["<b>most</b> tokens are unknown"]}
    assert repr(warned) == "Run(mini on sampler: entropy; 1 warning)"
    assert "warning: &lt;b&gt;most" in warned._repr_html_()


def test_a_comparison_has_a_repr_text_and_html(run: hs.Run) -> None:
    compared = hs.compare(run, run)
    assert repr(compared) == f"Compared({', '.join(compared.names)}: {', '.join(compared.values)})"
    assert "intervals:" in str(compared)
    assert compared._repr_html_().count("<table") == 1


def test_studies_and_twins_have_a_repr_text_and_html(small_model: Model) -> None:
    study = hs.ablate("mini", "sampler", parts=["layers"], limit=1, replicates=0)
    assert repr(study) == "StudyResult(ablation of mini on sampler: summary, ablation_layers)"
    assert str(study).endswith(study.signature)
    page = study._repr_html_()
    assert "tables: summary, ablation_layers" in page
    assert study.signature in page
    twins = hs.twins(small_model, small_model, limit=2, replicates=0)
    assert repr(twins) == "TwinHeads(4 heads of small (a) and 4 of small (b))"
    for sentence in str(twins).splitlines()[:-1]:
        assert sentence.split("<")[0] in twins._repr_html_().replace("&#x27;", "'")
