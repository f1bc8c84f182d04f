"""Comparisons of two studies of the same kind."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.comparison.studies import compare_studies, replicates_of
from headscope.errors import RunError
from headscope.results.columns import StateColumns
from headscope.results.results import Results
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval
from helpers.excerpts import excerpt

PROBES = {"probes": ["attention", "right-branching"], "epochs": 1, "seeds": 1, "max_length": 24, "replicates": 40}


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> list[hs.StudyResult]:
    folder = tmp_path_factory.mktemp("studies")
    data = {"corpus": excerpt(8, 4), "dev": excerpt(15, 4, start=8), **PROBES}
    return [hs.probe_attention(out=folder / f"root-{root}", root=root, **data) for root in ("shared", "separate")]


def recomputed_shares(study: hs.StudyResult) -> np.ndarray:
    """The share of governors found, on the data and in every replicate, computed word by word."""
    kept = StateColumns(study.results.state("probe"))
    words = list(zip(kept.words("document"), kept.words("relation"), kept.numbers("right/attention")[:, 0], strict=True))
    names = sorted({document for document, _, _ in words})
    weights = dict(zip(names, poisson_weights(names, 40, 0), strict=True))
    counted = [(weights[document], right) for document, relation, right in words if relation != "punct"]
    with np.errstate(invalid="ignore"):  # a replicate may have no documents
        return np.sum([weight * right for weight, right in counted], 0) / np.sum([weight for weight, _ in counted], 0)  # type: ignore[no-any-return]


def words_of_documents(study: hs.StudyResult) -> np.ndarray:
    """The number of words that count in each document."""
    kept = StateColumns(study.results.state("probe"))
    counts = Counter(name for name, relation in zip(kept.words("document"), kept.words("relation"), strict=True) if relation != "punct")
    return np.array(list(counts.values()))


def test_probes_are_paired_by_document(probes: list[hs.StudyResult]) -> None:
    found = hs.compare(*probes)
    assert found.names == ("root shared", "root separate")
    assert found.comparison.how.startswith("paired by document")
    rows = {row["probe"]: row for row in found.differences["summary"]}
    for probe, row in rows.items():
        own = [study["summary"].where(probe=probe)["uas"][0] for study in probes]
        assert (row["a"], row["b"]) == tuple(own)
        assert row["difference"] == own[1] - own[0]
    assert rows["attention"]["low"] < rows["attention"]["difference"] < rows["attention"]["high"]
    drawn, words = np.subtract(*map(recomputed_shares, reversed(probes))), words_of_documents(probes[0])
    assert_allclose([rows["attention"]["low"], rows["attention"]["high"]], interval(drawn[0], drawn[1:], Support.of(words)))
    alone = [study["summary"].where(probe="attention") for study in probes]
    values = found.values["summary"].where(run="root shared", probe="attention")
    assert (values["low"], values["high"]) == (alone[0]["low"], alone[0]["high"])


def test_a_study_does_not_differ_from_itself(probes: list[hs.StudyResult]) -> None:
    found = hs.compare(probes[0], probes[0])
    assert found.names == ("root-shared (1)", "root-shared (2)")
    for table in found.differences.values():
        assert set(table["difference"]) == {0.0}
        assert {bound for bound in [*table["low"], *table["high"]] if not np.isnan(bound)} == {0.0}


def test_studies_without_states_of_documents_have_no_interval_of_differences(tmp_path: Path) -> None:
    settings = {"parts": ["trees"], "measures": ["A"], "replicates": 30}
    studies = [hs.flow("mini", excerpt(8, 3), tmp_path / weights, weights=weights, **settings) for weights in ("trained", "random")]
    found = compare_studies([study.results for study in studies])
    assert found.how.startswith("for each study alone, not for differences")
    for row in found.differences["flow_tree_distances"]:
        assert math.isnan(row["low"])
        key = {name: row[name] for name in ("variant", "method", "measure")}
        both = [next(own for own in study["flow_tree_distances"].where(**key) if own["layer"] == row["layer"]) for study in studies]
        assert row["difference"] == both[1]["value"] - both[0]["value"]
        meets = both[0]["low"] <= both[1]["high"] and both[1]["low"] <= both[0]["high"]
        assert row["apart"] == (not meets)
    page = hs.compare(*studies).report(tmp_path / "flow.html").read_text()
    assert "Two studies side by side" in page
    assert "do not overlap" in page
    printed = CliRunner().invoke(app, ["compare", str(tmp_path / "trained"), str(tmp_path / "random")])
    assert "where the intervals, each for one study alone, do not overlap" in printed.output


@pytest.mark.parametrize("score", ["loss", "masked_accuracy"])
def test_replicates_of_an_ablation_reproduce_its_intervals_and_are_compared(score: str, tmp_path: Path) -> None:
    settings = {"parts": ["layers"], "replicates": 30, "score": score}
    one, other = (hs.ablate("mini", excerpt(8, 2), tmp_path / how, how=how, **settings) for how in ("zero", "mean"))
    found = replicates_of(one.results)["ablation_layers"]
    for row in one["ablation_layers"]:
        numbers = found[row["kind"], row["layer"]].numbers
        assert numbers.values[0, 0] == pytest.approx(row["difference"])
        assert_allclose(np.ravel(numbers.bounds()), [row["low"], row["high"]])
    compared = hs.compare(one, other)
    assert compared.names == ("how zero", "how mean")
    assert compared.comparison.how.startswith("paired by document")
    for row in compared.differences["ablation_layers"]:
        both = [study["ablation_layers"].where(layer=row["layer"])["difference"][0] for study in (one, other)]
        assert row["difference"] == pytest.approx(both[1] - both[0])
        assert row["low"] <= row["high"]


def test_studies_of_different_kinds_and_a_single_study_are_not_compared(probes: list[hs.StudyResult], tmp_path: Path) -> None:
    run = hs.run("mini", "sampler", ["entropy"], tmp_path / "run", limit=4, replicates=0, gallery=0)
    with pytest.raises(RunError, match="both runs and studies were named"):
        hs.compare(run, probes[0])
    other = hs.ablate("mini", "sampler", tmp_path / "ablated", parts=["layers"], limit=2, replicates=0)
    with pytest.raises(RunError, match="different kinds: attention_probe, ablation"):
        hs.compare(probes[0], other)
    with pytest.raises(RunError, match="only one run was named"):
        hs.compare(other)


def test_replicates_of_keyword_scores_match_values_worked_out_by_hand() -> None:
    kept = StateColumns()
    kept.add_words("document", ["x", "y", "x"])
    counts = np.array(
        [[[3, 1, 0], [1, 0, 0]], [[1, 0, 2], [0, 1, 1]], [[2, 2, 1], [1, 0, 2]]], dtype=float
    )  # [text, level, (found, wrong, missed)]
    kept.add("counts/all heads", counts)
    manifest = {"study": "keywords", "settings": {"replicates": 20, "seed": 3}}
    found = replicates_of(Results(manifest, {}, states={"fold": kept.state}))["keywords_scores"]
    values = found["words", "all heads"].numbers.values[:, 0]
    assert values[0] == 2 * 6 / (2 * 6 + 3 + 3)
    x, y = poisson_weights(["x", "y"], 20, 3)
    with np.errstate(invalid="ignore"):
        expected = 2 * (5 * x + y) / (2 * (5 * x + y) + 3 * x + (x + 2 * y))
    assert_allclose(values, expected)
    assert found["phrases", "all heads"].numbers.values[0, 0] == 2 * 2 / (2 * 2 + 1 + 3)
    assert found["words", "all heads"].drawn == (frozenset("xy"), 3)
    assert replicates_of(Results({**manifest, "settings": {"replicates": 0, "seed": 0}}, {})) == {}
