"""`headscope view`: each thing it writes, what it prints, and what it says of each mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from architectures import build
from families import FAMILIES
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.errors import HeadscopeError

TEXT = "The keys to the old cabinet that my sister bought are on the table."


def call(*arguments: str | Path) -> tuple[str, str]:
    """What is printed, and what is said beside it. Errors come out as exceptions."""
    result = CliRunner().invoke(app, ["view", *map(str, arguments)])
    if isinstance(result.exception, HeadscopeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def held(page: Path) -> dict[str, object]:
    found = re.search(r'id="headscope-data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    data: dict[str, object] = json.loads(found.group(1))["text"]
    return data


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> Iterator[None]:
    """Models are kept from one call to the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.api.load", cache(hs.load))
        yield


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "t5"
    tokens = FAMILIES["t5"]()
    build("t5", vocabulary=len(tokens)).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


def test_a_page_with_all_heads(tmp_path: Path) -> None:
    out, said = call(TEXT, "-o", tmp_path / "page.html")
    assert out.strip() == str(tmp_path / "page.html")
    assert said == ""
    data = held(tmp_path / "page.html")
    assert len(data["maps"]) == 144  # type: ignore[arg-type]
    assert data["heads"] == ["5-5"]
    assert re.fullmatch(r"headscope:\S+\|model:mini@[0-9a-f]{8}\|text:[0-9a-f]{8}", str(data["signature"]))
    assert data["level"] == "word"
    assert "far from each other" in str(data["why"])
    call(TEXT, "-o", tmp_path / "page.html", "--heads", "8-10,5-4", "--level", "word", "--specials", "hide")
    data = held(tmp_path / "page.html")
    assert (data["heads"], data["level"], data["specials"]) == (["8-10", "5-4"], "word", "hide")


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_a_picture(tmp_path: Path, suffix: str, start: bytes) -> None:
    call(TEXT, "--heads", "8-11", "-o", tmp_path / f"picture.{suffix}")
    assert (tmp_path / f"picture.{suffix}").read_bytes().startswith(start)


def test_a_picture_whose_font_lacks_letters_says_so(tmp_path: Path) -> None:
    _, said = call("它 is a word", "-o", tmp_path / "a.png")
    assert "the figure's font has no 它" in said
    assert "font" not in call("它 is a word", "-o", tmp_path / "a.svg")[1]
    assert "它" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_the_terminal_lists_the_strongest_links(t5: Path) -> None:
    out, _ = call(TEXT, "--heads", "8-4")
    expected = hs.view("mini", TEXT).grid("8-4")
    line = next(line for line in out.splitlines() if line.strip().startswith("that "))
    word, weight = expected.strongest(expected.rows.index("that"), 1)[0]
    assert re.match(rf"\s*that\s+[█▏▎▍▌▋▊▉]+\s+{weight:.2f} {word}", line)
    assert out.splitlines()[0] == "Head 8-4"
    assert "|text:" in out.splitlines()[-1]
    assert len(re.findall(r"^Head ", call(TEXT)[0], re.MULTILINE)) == 3
    both, _ = call("The cat sat", "A dog", "--model", t5, "--heads", "1-1,cross/1-2,decoder/2-1")
    assert re.findall(r"^Head (\S+)", both, re.MULTILINE) == ["1-1", "cross/1-2", "decoder/2-1"]


def test_a_pipe_gets_plain_text_and_a_terminal_without_utf_8_gets_signs_it_knows() -> None:
    result = CliRunner(charset="ascii").invoke(app, ["view", TEXT, "--heads", "8-4"])
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert re.search(r"that  #{5}\s+0\.85 bought", result.stdout)
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_a_narrow_terminal_is_not_overrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for wide in (40, 80):
        for name, value in {"FORCE_COLOR": "1", "COLUMNS": str(wide), "NO_COLOR": ""}.items():
            monkeypatch.setenv(name, value)
        printed, _ = call(TEXT, "--heads", "8-4")
        lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in printed.splitlines()[:-1]]
        assert max(map(len, lines)) <= wide
        assert "\x1b[" in printed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([TEXT, "--heads", "13-1"], "mini has no head 13-1. Its heads are 1-1 to 12-12"),
        ([TEXT, "--heads", "cross/1-1"], "mini has no cross attention. It has encoder"),
        ([TEXT, "--heads", "eight"], "names no head"),
        ([TEXT, "--heads", ","], "no head is named"),
        ([TEXT, "-o", "page.docx"], "cannot be written as 'page.docx'"),
        ([TEXT, "-o", "page"], "cannot be written as 'page'"),
        ([TEXT, "-o", "/proc/nowhere/page.html"], "cannot be written"),
        ([TEXT, "-o", "/dev/null/page.svg"], "cannot be written"),
        ([TEXT, "--level", "letter"], "level 'letter' is unknown"),
        ([TEXT, "--specials", "drop"], "specials 'drop' is unknown"),
        ([TEXT, "--heads", ",".join(f"1-{n}" for n in range(1, 10)), "-o", "a.svg"], "room for 8 heads, not 9"),
        ([""], "there is no text to look at"),
        ([TEXT, "  "], "there is no text to look at"),
        ([TEXT, "--model", "/nowhere"], "/nowhere is not a folder"),
        ([TEXT, "--max-length", "4"], "leaves no room"),
    ],
)
def test_each_mistake_is_explained(arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HeadscopeError, match=re.escape(says)):
        call(*arguments)
    assert not list(tmp_path.iterdir())


def test_a_mistake_is_one_line_and_exit_code_2(headscope: Callable[..., tuple[int, str, str]]) -> None:
    code, printed, error = headscope("view", TEXT, "-o", "page.docx")
    assert (code, printed, error.count("\n")) == (2, "", 1)


def test_a_long_text_is_cut_and_says_how_much(tmp_path: Path) -> None:
    _, said = call("word " * 2000, "--heads", "1-1,2-1", "-o", tmp_path / "page.html")
    assert re.search(r"headscope: 1,746 words cut off at the end; mini reads the first 256 tokens", said)
    assert "2 of 144 heads are in the page" in said
    assert sorted(held(tmp_path / "page.html")["maps"]) == ["1-1", "2-1"]  # type: ignore[call-overload]
    _, said = call("word " * 2000, "--max-length", "20", "-o", tmp_path / "page.html")
    assert "1,982 words cut off at the end" in said
    assert len(held(tmp_path / "page.html")["maps"]) == 144  # type: ignore[arg-type]


def test_help_teaches_by_example_and_is_quick() -> None:
    text = call("--help")[0]
    assert re.search(r"^  headscope view \"", text, re.MULTILINE)
