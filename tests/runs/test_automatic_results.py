"""Every kind of result reports automatic annotation; results on other annotation do not mention it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import headscope as hs
from headscope.app.create import create_app
from headscope.app.limits import Limits
from headscope.cli.main import app
from headscope.comparison.runs import compare
from headscope.corpora import Corpus, read
from headscope.models.model import Model
from headscope.results.signature import signature
from headscope.studies.base import StudyContext
from headscope.studies.execute import _identity
from headscope.studies.registry import REGISTRY
from headscope.views.words import findings

PART = "annotation:automatic(spaCy-3.8.18)"
NOTICE = "The annotation is automatic: sentences, words, tags and trees are what a parser found (spaCy 3.8.18, en_tiny 0.1.0)"


def texts(mark: str, documents: int = 4) -> str:
    """CoNLL-U text of the first documents of the embedded corpus: up to six sentences each, with `mark` as a comment
    line per document.
    """
    source = "".join(path.read_text(encoding="utf-8") for path in read("sampler").paths)
    found = []
    for one in source.split("# newdoc id")[1 : documents + 1]:
        head, _, rest = one.partition("\n")
        found.append(f"# newdoc id{head}\n{mark}" + "\n\n".join(rest.split("\n\n")[:6]) + "\n\n")
    return "".join(found)


@pytest.fixture(scope="module")
def automatic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpora") / "auto.conllu"
    path.write_text(texts("# annotation = automatic; spaCy 3.8.18; en_tiny 0.1.0\n"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def gold(automatic: Path) -> Path:
    path = automatic.with_name("gold.conllu")
    path.write_text(texts(""), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(automatic: Path) -> hs.Run:
    return hs.run("mini", automatic, ["entropy", "relations"], automatic.with_name("auto"), replicates=0, gallery=2)


@pytest.fixture(scope="module")
def gold_run(gold: Path) -> hs.Run:
    return hs.run("mini", gold, ["entropy", "relations"], gold.with_name("gold"), replicates=0, gallery=2)


def test_all_outputs_of_a_run_report_automatic_annotation(run: hs.Run, gold_run: hs.Run, tmp_path: Path) -> None:
    assert PART in run.signature
    assert run.results.manifest["identity"]["annotation"] == "automatic; spaCy 3.8.18; en_tiny 0.1.0"
    assert all(PART in run.results[name].metadata["signature"] for name in run.results)
    page = run.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.search(rf'<p class="mind" role="note">{re.escape(NOTICE)}', page)
    assert "auto.conllu (automatic annotation)" in page
    figure = run["entropy"].plot()
    assert PART in figure.caption.text
    shown = CliRunner().invoke(app, ["show", str(run.results.path)]).output
    assert NOTICE in shown
    assert PART in shown
    assert "automatic annotation" not in gold_run.report(tmp_path / "plain.html").read_text(encoding="utf-8").split("<script")[0]
    assert "annotation" not in gold_run.results.manifest["identity"]
    assert "annotation" not in gold_run.signature
    assert NOTICE not in CliRunner().invoke(app, ["show", str(gold_run.results.path)]).output


def test_the_web_app_and_a_comparison_report_automatic_annotation(run: hs.Run, gold_run: hs.Run) -> None:
    with TestClient(create_app({"auto": run.results, "gold": gold_run.results}, {}, Limits()), base_url="http://localhost") as client:
        assert "auto.conllu (automatic annotation)" in client.get("/").text
        assert NOTICE in client.get("/runs/auto").text
        compared = client.get("/compare?a=gold&b=auto").text
        assert "annotation is not marked as automatic in gold; automatic, spaCy 3.8.18, en_tiny 0.1.0 in auto" in compared
        listed = {one["name"]: one for one in client.get("/api/runs").json()}
        assert PART in listed["auto"]["signature"]
    found = compare([gold_run.results, run.results])
    assert found.names == ("gold", "auto")
    assert found.unlike == (
        "annotation is not marked as automatic in gold; automatic, spaCy 3.8.18, en_tiny 0.1.0 in auto: "
        "parser errors are part of the difference",
    )
    assert compare([run.results, run.results]).unlike == ()


def test_a_study_reports_automatic_annotation(automatic: Path, tmp_path: Path) -> None:
    """All studies use the same mechanism, so one study is tested."""
    study = hs.flow("mini", automatic, tmp_path / "study", measures=["A"], parts=["trees"], limit=4, replicates=0)
    assert PART in study.signature
    assert findings(study.results)[0].startswith(NOTICE)
    assert NOTICE in str(study)
    assert study.results.manifest["identity"]["annotation"].startswith("automatic; spaCy")
    page = study.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert f'<p class="mind" role="note">{NOTICE}' in page
    assert NOTICE in CliRunner().invoke(app, ["show", str(tmp_path / "study")]).output


def test_the_signature_of_the_keywords_study_marks_automatic_annotation(automatic: Path) -> None:
    """The study itself takes long, so only its signature is computed."""
    study = REGISTRY["keywords"]
    work = study.work(study.make({"corpus": str(automatic)}), StudyContext(hs.load("mini"), {"corpus": read(automatic), "dev": None}))
    assert PART in signature(work.spec, _identity(work))


def test_the_signature_of_a_probe_marks_partly_automatic_annotation(automatic: Path, gold: Path) -> None:
    settings: dict[str, Any] = {"probes": ["right-branching"], "limit": 8, "seeds": 1, "max_length": 40, "replicates": 0}
    assert "annotation:partly-automatic(spaCy-3.8.18)" in hs.probe_attention("mini", automatic, gold, **settings).signature
    assert "annotation" not in hs.probe_attention("mini", gold, gold, **settings).signature


def test_signatures_of_a_corpus_in_memory_and_of_twins_mark_automatic_annotation(automatic: Path, mini: Model) -> None:
    run = hs.run("mini", Corpus.of(read(automatic)), ["entropy"], replicates=0, gallery=0, limit=2)
    assert PART in run.signature
    assert PART in hs.twins(mini, mini, automatic, limit=2, replicates=0).signature
