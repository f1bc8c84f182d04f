"""The page on attention probes names every option, table and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from headscope.figures import known_figures
from headscope.studies.attention_probe.spec import NAMES, AttentionProbeSpec

PAGE = (Path(__file__).parents[2] / "docs" / "attention-probe.md").read_text(encoding="utf-8")
USUAL = {"model", "corpus", "format", "replicates", "seed", "dtype", "on_error"}  # options that every study has
OPTIONS = [name for name, field in AttentionProbeSpec.model_fields.items() if field.description and name not in USUAL]


@pytest.mark.parametrize("option", [*OPTIONS, "resume"])
def test_the_page_names_every_option(option: str) -> None:
    assert f"--{'no-' if option == 'bias' else ''}{option.replace('_', '-')}" in PAGE


def test_the_page_names_probes_tables_columns_and_figures() -> None:
    ends = ("", "_differences", "_relations", "_heads")
    for name in (
        *NAMES,
        "summary",
        *(f"attention_probe{end}" for end in ends),
        "weight",
        "pull",
        "rank",
        "with_punct",
        "sd",
        "low",
        "high",
    ):
        assert f"`{name}`" in PAGE, name
    for figure in (name for name, about in known_figures().items() if "headscope probe attention" in about):
        assert figure in PAGE
