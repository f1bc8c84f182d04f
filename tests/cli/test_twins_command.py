"""`headscope twins` from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.errors import HeadscopeError
from headscope.results.results import Results
from helpers.architectures import build
from helpers.families import FAMILIES


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small random model."""
    folder = tmp_path_factory.mktemp("models") / "small"
    tokens = FAMILIES["wordpiece"]()
    build("bert", vocabulary=len(tokens)).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


def call(*arguments: str | int | Path, verb: str = "twins") -> str:
    result = CliRunner().invoke(app, [verb, *map(str, arguments)])
    if isinstance(result.exception, HeadscopeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output.lstrip("\n")


def test_the_command_prints_the_findings_and_writes_the_results(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    options: list[str | int] = ["--max-length", 60, "--limit", 6, "--replicates", 5, "--epsilon", "0.03", "--epsilon", "0.2", "--pairs", 2]
    text = call(small, small, *options, "-o", folder)
    first = text.index("8 heads of small (a) and 8 of small (b) are compared")
    lines = text[first:].splitlines()
    assert re.match(r"A head of small \(a\) is 0\.000 from its twin in small \(b\), on average and 0\.\d+ from its nearest", lines[1])
    assert lines[2].startswith("Share of heads of small (a) with a twin in small (b): 100 % at a distance below 0.03 (small (a) ")
    assert "100 % at a distance below 0.2 (" in lines[2]
    assert "8 pairs of mutual twins; the closest are 1-1 and 1-1 (0.000), 1-2 and 1-2" in text
    assert "the 2 closest pairs of mutual twins" in text
    assert "mean distance to the twin in the other model" in text
    assert "|limit:6|" in text
    results = Results.open(folder)
    assert list(results) == ["summary", "twins", "twins_layers", "twins_matrix", "twins_summary"]
    assert len(results["twins"]) == 16
    assert all(row["mutual"] and row["distance"] == 0 for row in results["twins"])
    assert results.manifest["settings"]["epsilons"] == [0.03, 0.2]
    assert list(folder.glob(".tmp*")) == [], "no temporary file is left"
    assert "8 heads of small (a) and 8 of small (b)" in call(folder, verb="show")
    call(folder, "twins", "--embedding", "classical", "-o", tmp_path / "twins.svg", verb="plot")
    assert (tmp_path / "twins.svg").stat().st_size > 10_000
    assert "identical to the last bit" in call(folder, verb="rerun")
    page = Path(call(folder, verb="report").strip())
    assert "Heads and layers of both models" in page.read_text()
    with pytest.raises(HeadscopeError, match="already holds a run"):
        call(small, small, *options, "-o", folder)
    call(small, small, "--max-length", 60, "--limit", 6, "--replicates", 0, "-q", "-o", tmp_path / "other")
    assert "distances of twins, and how many heads have one" in call(folder, tmp_path / "other", verb="compare")


def test_quiet_prints_only_warnings(small: Path, tmp_path: Path) -> None:
    options: list[str | int] = ["--max-length", 60, "--limit", 1, "--replicates", 0, "--level", "token", "--control", "-q"]
    lines = call(small, small, *options, "--out", tmp_path / "out").splitlines()
    assert len(lines) == 2
    for line, name in zip(lines, ("small (a)", "small (b)"), strict=True):
        assert re.match(rf"headscope: warning: .* are unknown to the tokenizer of {re.escape(name)}\.", line)
    (first, *_) = Results.open(tmp_path / "out")["twins_summary"]
    assert first["value"] > 0


def test_settings_are_read_from_a_file_and_from_options(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may name both models. Options of the command line are added, and the default output folder is used."""
    monkeypatch.chdir(tmp_path)
    Path("twins.toml").write_text(f'model = "{small}"\nother = "{small}"\nmax_length = 60\nlimit = 2\nepsilons = [0.5]\nreplicates = 0\n')
    call("--settings", "twins.toml", "--kind", "encoder", "-q")
    settings = Results.open(Path("runs/twins-small-small-sampler")).manifest["settings"]
    assert (settings["other"], settings["limit"], settings["epsilons"]) == (str(small), 2, [0.5])
    assert settings["kind"] == ["encoder", "encoder"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "B is missing: the second model.* Use headscope twins A B"),
        (["small"], "B is missing"),
        (["small", "./nowhere"], "./nowhere is not a folder"),
        (["small", "small", "--max-length", "60", "--corpus", "nothing.txt"], "there is no such file"),
        (["small", "small", "--max-length", "60", "--kind", "encoder,decoder"], "small has no decoder self-attention"),
        (["small", "small", "--max-length", "60", "--kind", "encoder,encoder,encoder"], "3 kinds for two models"),
        (["small", "small", "--max-length", "60", "--level", "letter"], "should be 'word' or 'token'"),
        (["small", "small", "--max-length", "5"], "no text of sampler is left that both models read"),
        (["small", "small", "--max-length", "60", "--out", __file__], "is a file"),
    ],
)
def test_invalid_arguments_are_refused_with_a_reason(
    arguments: list[str], says: str, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HeadscopeError, match=says):
        call(*(small if name == "small" else name for name in arguments))
