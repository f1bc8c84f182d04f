"""The command line, tested by its output and its exit codes; once in a separate process."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.errors import HeadscopeError

Headscope = Callable[..., tuple[int, str, str]]


def call(*arguments: str | Path) -> str:
    """Run a command and return its output. Errors of headscope are raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, HeadscopeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    call("run", "--out", out, "--limit", "6", "--replicates", "10", "-q")
    return out


def test_help_of_every_verb_imports_no_slow_package() -> None:
    """This keeps help fast; benchmarks/startup.py measures how fast."""
    code = """
import sys
from typer.main import get_command
from headscope.cli.main import app, main

def verbs(command, path):
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from verbs(inner, [*path, name])

asked = list(verbs(get_command(app), []))
for path in asked:
    sys.argv = ["headscope", *path, "--help"]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0, path
    assert path or "pydantic" not in sys.modules  # the command line's own library imports it for the options of a verb
slow = {"torch", "transformers", "numpy", "scipy", "sklearn", "numba", "pyarrow", "matplotlib", "jinja2", "fastapi", "uvicorn"}
print("ASKED", len(asked), "SLOW", sorted(slow & sys.modules.keys()))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *_, asked, _, slow = result.stdout.splitlines()[-1].split(maxsplit=3)
    assert int(asked) > 30
    assert slow == "[]"


@pytest.mark.parametrize(
    "verb", ["run", "show", "plot", "alike", "twins", "report", "inspect", "corpus stats", "corpus check", "corpus compare"]
)
def test_help_of_a_verb_contains_an_example(verb: str) -> None:
    text = call(*verb.split(), "--help")
    assert re.search(rf"^  headscope {verb}", text, re.MULTILINE)


def test_run_works_in_a_separate_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headscope", "run", "--limit", "3", "--measures", "entropy,tokens", "-O", "entropy.level=word"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr
    assert "3 texts" in result.stdout
    assert "headscope report runs/mini-sampler" in result.stdout.replace("\n", " ")
    manifest = json.loads((tmp_path / "runs/mini-sampler/run.json").read_text())
    assert manifest["settings"]["measures"] == {"entropy": {"level": "word"}, "tokens": {}}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--corpus", "nowhere.conllu"], "nowhere.conllu: there is no such file"),
        (["run", "--model", "/nowhere/at/all"], "/nowhere/at/all is not a folder"),
        (["run", "missing.toml"], "missing.toml: there is no such file"),
        (["show", "nowhere"], "nowhere is not a run folder"),
        (["corpus", "stats", "nowhere.xyz"], "nowhere.xyz"),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(
    headscope: Headscope, arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed, error = headscope(*arguments)
    assert (code, printed) == (2, "")
    assert says in error
    assert error.startswith("headscope: ")
    assert len(error.strip().splitlines()) == 1


def test_an_invalid_sentence_is_named_by_its_line_or_skipped(headscope: Headscope, tmp_path: Path) -> None:
    good = "1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
    bad = tmp_path / "bad.conllu"
    bad.write_text(f"# newdoc id = d\n# sent_id = 1\n{good}# sent_id = 2\n{good.replace('	2	det', '	7	det')}")
    code, _, error = headscope("run", "--corpus", bad, "--out", tmp_path / "run")
    assert code == 2
    assert re.search(r"line 7 of \S*bad\.conllu: head 7 in a sentence of 2 words", error)
    assert not (tmp_path / "run" / "tables").exists()
    call("run", "--corpus", bad, "--out", tmp_path / "run", "--on-error", "skip", "-q", "--overwrite")
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["counts"]["texts"] == 1
    assert any("skipped" in line for line in manifest["dropped"])


def test_show_filters_sorts_and_exports(folder: Path) -> None:
    assert "tokens (864 rows)" in call("show", folder)
    rows = list(csv.DictReader(io.StringIO(call("show", folder, "tokens", "--quantity", "to_sep", "--sort", "value", "--format", "csv"))))
    assert len(rows) == 144
    assert [float(row["value"]) for row in rows] == sorted((float(row["value"]) for row in rows), reverse=True)
    one = json.loads(call("show", folder, "entropy", "--head", "2-1", "--format", "json"))
    assert {(row["layer"], row["head"]) for row in one} == {(2, 1)}
    assert {row["quantity"] for row in one} == {"entropy", "entropy_cls", "max_weight"}
    markdown = call("show", folder, "tokens_layers", "--format", "markdown", "--limit", "1").splitlines()
    assert markdown[0] == "| kind | layer | quantity | value | low | high | n | documents | baseline |"
    assert len(markdown) == 3
    assert call("show", folder, "tokens_layers", "--format", "latex", "--limit", "2").count(r"to\_cls") == 2
    assert "more rows" in call("show", folder, "tokens")
    for arguments, says in [
        (["tokens", "--quantity", "to_moon"], "no quantity 'to_moon'"),
        (["moons"], "no table 'moons'"),
        (["tokens", "--head", "99-1"], "no head 99-1"),
        (["tokens", "--head", "x"], "is not the name of a head"),
        (["tokens", "--sort", "beauty"], "there is no column 'beauty'"),
        (["tokens", "--format", "docx"], "format 'docx' is unknown"),
    ]:
        with pytest.raises(HeadscopeError, match=says):
            call("show", folder, *arguments)


def test_plot_and_report_write_files(folder: Path, tmp_path: Path) -> None:
    for name, start in (("a.svg", b"<?xml"), ("b.pdf", b"%PDF"), ("c.png", b"\x89PNG")):
        call("plot", folder, "clark2", "-o", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    call("plot", folder, "heatmap", "--quantity", "entropy", "-o", tmp_path / "d.svg")
    path = Path(call("report", folder).strip().splitlines()[-1])
    assert path == (folder / "report.html").resolve()
    for arguments, says in [
        (["clark9"], "figure 'clark9' is unknown"),
        (["clark2", "-o", "x.bmp"], "Use a name that ends in svg, pdf, png"),
        (["heatmap"], "needs a quantity"),
        (["heatmap", "--quantity", "joy"], "no quantity 'joy'"),
        (["clark2", "--kind", "cross"], "no cross attention"),
    ]:
        with pytest.raises(HeadscopeError, match=says):
            call("plot", folder, *arguments)


def test_a_toml_file_sets_the_options_of_a_run(tmp_path: Path) -> None:
    spec = tmp_path / "study.toml"
    spec.write_text(f'limit = 3\nreplicates = 5\nout = "{tmp_path}/run"\n[measures.entropy]\nlevel = "word"\n')
    call("run", spec, "-q")
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert settings["limit"] == 3
    assert settings["measures"] == {"entropy": {"level": "word"}}
    spec.write_text("limit = three\n")
    with pytest.raises(HeadscopeError, match="is not a TOML file"):
        call("run", spec)
    spec.write_text("limits = 3\n")
    with pytest.raises(HeadscopeError, match=r"study\.toml: there is no setting 'limits'"):
        call("run", spec)


def test_run_measures_maps_from_a_file(tmp_path: Path) -> None:
    maps = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3, 4)).astype(np.float32)
    np.savez(tmp_path / "one.npz", attn=maps, tokens=np.array(["[CLS]", "a", "cat", "[SEP]"]))
    call("run", "--maps", tmp_path / "one.npz", "--out", tmp_path / "run", "-q")
    row = json.loads(call("show", tmp_path / "run", "tokens", "--quantity", "to_sep", "--format", "json"))[0]
    assert row["value"] == pytest.approx(maps[0, 0, :, 3].mean(), abs=1e-6)
    with pytest.raises(HeadscopeError, match="--overwrite"):
        call("run", "--maps", tmp_path / "one.npz", "--out", tmp_path / "run", "-q")


def test_inspect_describes_a_model_and_doctor_finds_no_problem() -> None:
    text = call("inspect", "--length", "200", "--batch", "2", "--layers")
    assert "encoder, 12 layers × 12 heads, 144 heads in all" in text
    assert "layer by layer" in text
    assert f" {4 * 2 * 200 * 200 * 12 / 1e6:.1f} MB" in text, "the memory of the maps of one layer"
    assert "encoder.layer.11.attention.self" in text
    assert call("doctor").strip().endswith("no problem was found")


def test_corpus_stats_counts_words_and_corpus_check_finds_an_error(tmp_path: Path) -> None:
    text = call("corpus", "stats", "sampler")
    words = sum(len(document.words) for document in hs.read("sampler"))
    assert re.search(rf"sentences +{sum(len(document.sentences) for document in hs.read('sampler'))}\n", text)
    assert re.search(rf"split words +\d+ of {words:,}", text)
    assert "nothing wrong" in call("corpus", "check", "sampler")
    bad = tmp_path / "bad.conllu"
    bad.write_text("# newdoc id = d\n# sent_id = 1\n# text = A\n1\tA\ta\tDET\tDT\t_\t1\tdet\t_\t_\n\n")
    result = CliRunner().invoke(app, ["corpus", "check", str(bad)])
    assert result.exit_code == 1
    assert "bad.conllu" in result.output
