"""`headscope corpus check`: its output and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app

SENTENCE = "# sent_id = {0}\n# text = the dog\n1\tthe\tthe\t{1}\t_\t_\t2\tdet\t_\t_\n2\tdog\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def write_corpus(folder: Path, *tags: str) -> str:
    path = folder / "a.conllu"
    text = "".join(SENTENCE.format(number, tag) for number, tag in enumerate(tags, start=1))
    path.write_text("# newdoc id = d\n" + text, encoding="utf-8")
    return str(path)


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["corpus", "check", *arguments])
    return result.exit_code, result.output


def test_a_valid_corpus_has_no_findings(tmp_path: Path) -> None:
    assert call(write_corpus(tmp_path, "DET")) == (0, "a.conllu: nothing wrong\n")


def test_a_finding_is_one_line(tmp_path: Path) -> None:
    path = write_corpus(tmp_path, "ADV")
    line = f"line 4 of {path} (1): det-upos: det takes no ADV: 'the' (ADV, det). Tag it DET, add ExtPos=DET, or choose another relation"
    assert call(path) == (1, f"{line}\na.conllu: 1 finding\n")


@pytest.mark.parametrize(("options", "printed"), [((), 20), (("--limit", "3"), 3), (("--limit", "0"), 25)])
def test_findings_of_one_rule_are_limited(tmp_path: Path, options: tuple[str, ...], printed: int) -> None:
    code, output = call(write_corpus(tmp_path, *["ADV"] * 25), *options)
    assert code == 1
    assert output.count("det-upos: ") == printed
    assert ("--limit 0 prints all" in output) == (printed < 25)
    assert output.endswith("a.conllu: 25 findings\n")
    if printed < 25:
        assert "det-upos       3   wrong   25" in output


def test_level_and_ignore_select_the_rules(tmp_path: Path) -> None:
    path = write_corpus(tmp_path, "ADV", "DT")
    assert call(path, "--level", "1") == (0, "a.conllu: nothing wrong\n")
    assert call(path, "--level", "2")[1].count("line ") == 1
    assert call(path, "--ignore", "det-upos", "--ignore", "upos") == (0, "a.conllu: nothing wrong\n")
    assert call(path, "--level", "4")[0] == 2


def test_a_note_does_not_fail_the_check(tmp_path: Path) -> None:
    path = Path(write_corpus(tmp_path, "DET"))
    path.write_text(path.read_text(encoding="utf-8").removeprefix("# newdoc id = d\n"), encoding="utf-8")
    code, output = call(str(path))
    assert code == 0
    assert "newdoc-missing, a note" in output
    assert output.endswith("a.conllu: nothing wrong, 1 note\n")
