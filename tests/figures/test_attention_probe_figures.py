"""Figures, report and command of an attention-probe study."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.document import Document
from headscope.corpora import Corpus, read
from headscope.drawing.theme import render
from headscope.errors import RunError
from headscope.results.results import Results
from headscope.results.table import Table

SHORT = Corpus.of(Document(d.id, tuple(s for s in d.sentences if len(s) < 9)) for d in read("sampler"))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> hs.StudyResult:
    out = tmp_path_factory.mktemp("probe") / "study"
    return hs.probe_attention("mini", SHORT, SHORT, out, epochs=1, seeds=2, words="model", replicates=20)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table3", ["attention and words", "words and distances", "right-branching", "Clark et al. 2019", "Governors found"]),
        ("probe_heads", ["attention from the word to the candidate", "pull towards the governor", "Probe: attention"]),
        ("probe_relations", ["nsubj (", "Governors found"]),
    ],
)
def test_figures_contain_their_labels_and_a_figure_of_another_study_is_refused(study: hs.StudyResult, name: str, words: list[str]) -> None:
    drawn = render(study.plot(name), "svg").decode()
    for word in words:
        assert word in drawn
    with pytest.raises(RunError, match=r"michel1 shows ablation.*headscope ablate"):
        study.plot("michel1")


def test_table_3_has_the_order_of_the_paper_and_numbers_in_columns(study: hs.StudyResult) -> None:
    (axes,) = study.plot("table3").axes
    rows = [text.get_text() for text in axes.get_yticklabels()]
    assert rows[:4] == ["structural probe*", "right-branching", "words and distances", "attention and words,\nrandom weights"]
    assert rows[-2:] == ["attention", "attention and words"]
    written = [text.get_text() for text in axes.texts]
    ours, paper = written[1 : written.index("paper")], written[written.index("paper") + 1 :]
    uas = {row["probe"]: f"{100 * row['uas']:.1f}" for row in study["summary"]}
    assert ours == ["–", *(uas[name] for name in ("right-branching", "words-distances", "random-attention-words", "random-attention",
                                                  "attention", "attention-words"))]  # fmt: skip
    assert paper == ["80*", "26", "58", "30", "–", "61", "77"]
    assert len({text.get_position()[0] for text in axes.texts}) == 2, "numbers are in two columns beside the axes, not next to the marks"
    found = {
        "source": ["model", "model"],
        "metric": ["UUAS", "UUAS"],
        "layer": [1, 2],
        "value": [41.0, 52.5],
        "low": [1.0] * 2,
        "high": [99.0] * 2,
    }
    structural = Results({"study": "structural_probe", "best_layer": 2, "signature": "x"}, {"structural": Table.of(found)})
    (axes,) = study.plot("table3", structural=structural).axes
    assert axes.texts[1].get_text() == "52.5*"
    with pytest.raises(RunError, match="not a study of a structural probe"):
        study.plot("table3", structural=study)


def test_a_study_has_a_report_and_can_be_opened_again(study: hs.StudyResult) -> None:
    text = study.report().read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml;base64") == 3
    assert "Syntax in the attention of all heads" in text
    assert "A weighted sum of all heads finds the governor of" in text
    again = hs.open_study(study.results.path or "")
    assert str(again) == str(study)
    assert "attention_probe_heads" in again.tables


def test_the_command_trains_the_probes_and_refuses_invalid_input(tmp_path: Path) -> None:
    treebank = tmp_path / "a.conllu"
    rows = ["1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_", "2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_", "3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_"]
    treebank.write_text("".join(f"# newdoc id = d{n}\n" + "\n".join(rows) + "\n\n" for n in range(6)))
    vectors = tmp_path / "v.txt"
    vectors.write_text("dogs 1 0\nbark 0 1\n")
    command = ["probe", "attention", "--corpus", str(treebank), "--dev", str(treebank), "--vectors", str(vectors)]
    options = ["--seeds", "2", "--epochs", "12", "--batch", "2", "--decode", "tree", "--replicates", "10"]
    out = tmp_path / "x"
    done = CliRunner().invoke(app, [*command, *options, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "attention-words" in done.output
    assert "With weights that depend on the two words, it finds 100.0 %" in done.output
    assert "66.7% of the words of the test sentences have a vector in v.txt" in done.output
    summary = {row["probe"]: row for row in hs.open_study(out)["summary"]}
    assert summary["attention-words"]["uas"] == 1  # all sentences have the same three words
    assert summary["right-branching"]["uas"] == 0.5
    assert summary["attention-words"]["tree"] == 1
    with pytest.raises(RunError, match="no GloVe vectors were found"):
        CliRunner().invoke(app, [*command[:4], "--words", "glove", "--out", str(tmp_path / "y")], catch_exceptions=False)
    with pytest.raises(RunError, match="the options: root = 'wild'"):
        CliRunner().invoke(app, [*command, "--root", "wild"], catch_exceptions=False)
