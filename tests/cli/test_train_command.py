"""`headscope train` from the command line."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, BertModel
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app, main
from headscope.cli.models import train
from headscope.models.finetuning.recipe import METRICS
from headscope.stats.choices import TESTS
from helpers.families import FAMILIES

ROOT = Path(__file__).parents[2]
runner = CliRunner()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [f"a film that is {word} {word}\t{label}" for label, word in enumerate(("dull", "fine")) for _ in range(12)]
    path = tmp_path / "films.tsv"
    path.write_text("\n".join(f"{row[:4]}{number} {row[4:]}" for number, row in enumerate(rows)), encoding="utf-8")
    return path


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    tokens = FAMILIES["wordpiece"]()
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20}
    BertModel(BertConfig(vocab_size=len(tokens), **sizes)).save_pretrained(tmp_path / "tiny")
    tokens.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def test_train_prints_the_score_beside_the_majority_class(table: Path, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "films"
    command = [
        "train",
        "--corpus",
        str(table),
        "--dev",
        str(table),
        "--out",
        str(out),
        "--model",
        str(tiny),
        "--epochs",
        "2",
        "--checks",
        "1",
    ]
    done = runner.invoke(app, [*command, "--batch", "8", "--device", "cpu"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "learnt from 24 texts: 0, 1\n" in done.stdout
    assert "on 24 texts held out, after " in done.stdout
    assert "the majority class has 0.5000\n" in done.stdout
    assert f"saved in {out}\n" in done.stdout
    assert "epoch 1.00: loss 0." in done.stderr
    model = hs.load(out, device="cpu", head=True)
    assert model.classes == {"0": 0, "1": 1}
    again = runner.invoke(app, command)
    assert again.exit_code == 1
    assert "contains a trained model" in str(again.exception)
    quiet = runner.invoke(app, [*command, "--overwrite", "--quiet", "--limit", "8"], catch_exceptions=False)
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_an_unknown_metric_is_refused_with_exit_code_2(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["headscope", "train", "--corpus", str(table), "--out", str(tmp_path / "m"), "--metric", "bleu"])
    with pytest.raises(SystemExit) as error:
        main()
    assert error.value.code == 2
    assert capsys.readouterr().err.startswith("headscope: metric is 'bleu'. Use one of accuracy, f1,")


def test_every_option_and_score_is_documented() -> None:
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    undocumented = {
        "corpus",
        "out",
        "model",
        "dev",
        "device",
        "format",
        "old_format",
        "on_error",
        "overwrite",
        "quiet",
        "labels",
        "max_length",
    }
    for name in inspect.signature(train).parameters:
        assert name in undocumented or f"`--{name.replace('_', '-')}`" in page, name
    for metric in METRICS:
        assert f"`{metric}`" in page, metric
    for test in TESTS:
        assert f"`{test}`" in page, test


def test_the_python_of_the_training_page_runs(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    fine_tuning, scores = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text(table.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"hs": hs}
    exec(fine_tuning, names)
    assert names["model"].objective == "classes"
    exec(scores, names)
    assert names["found"].difference.tolist() == [-0.25, 0.25]
