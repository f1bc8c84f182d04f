"""`headscope train`, as a person uses it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app, main

runner = CliRunner()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [f"a film that is {word} {word}\t{label}" for label, word in enumerate(("dull", "fine")) for _ in range(12)]
    path = tmp_path / "films.tsv"
    path.write_text("\n".join(f"{row[:4]}{number} {row[4:]}" for number, row in enumerate(rows)), encoding="utf-8")
    return path


def test_train_prints_the_score_beside_the_majority_class(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "films"
    order = ["train", "--corpus", str(table), "--dev", str(table), "--out", str(out), "--epochs", "2", "--device", "cpu", "--checks", "1"]
    done = runner.invoke(app, [*order, "--batch", "8", "--rate", "3e-4"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "learnt from 24 texts: 0, 1\n" in done.stdout
    assert "on 24 texts held out, after " in done.stdout
    assert "the majority class has 0.5000\n" in done.stdout
    assert f"saved in {out}\n" in done.stdout
    assert "epoch 1.00: loss 0." in done.stderr
    model = hs.load(out, device="cpu", head=True)
    assert model.classes == {"0": 0, "1": 1}
    again = runner.invoke(app, order)
    assert again.exit_code == 1
    assert "holds a trained model" in str(again.exception)
    quiet = runner.invoke(app, [*order, "--overwrite", "--quiet", "--limit", "8"], catch_exceptions=False)
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_a_mistake_is_one_line(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["headscope", "train", "--corpus", str(table), "--out", str(tmp_path / "m"), "--metric", "bleu"])
    with pytest.raises(SystemExit) as error:
        main()
    assert error.value.code == 2
    assert capsys.readouterr().err.startswith("headscope: metric is 'bleu'. Take one of accuracy, f1,")
