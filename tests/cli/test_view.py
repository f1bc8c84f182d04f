"""`headscope view`: the files that it writes, its output, and its error messages."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.errors import HeadscopeError
from headscope.studies.flow.influence import Influence
from helpers.architectures import build
from helpers.families import FAMILIES

TEXT = "The keys to the old cabinet that my sister bought are on the table."


def call(*arguments: str | Path) -> tuple[str, str]:
    """Run `headscope view` and return its standard output and standard error. Errors of headscope are raised."""
    result = CliRunner().invoke(app, ["view", *map(str, arguments)])
    if isinstance(result.exception, HeadscopeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def page_data(page: Path) -> dict[str, object]:
    """The data of the text in a page."""
    found = re.search(r'id="headscope-data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    data: dict[str, object] = json.loads(found.group(1))["text"]
    return data


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> Iterator[None]:
    """Load each model once for all calls."""
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


def test_a_page_contains_all_heads_and_shows_the_chosen_ones(tmp_path: Path) -> None:
    out, stderr = call(TEXT, "-o", tmp_path / "page.html")
    assert out.strip() == str(tmp_path / "page.html")
    assert stderr == ""
    data = page_data(tmp_path / "page.html")
    assert len(data["maps"]) == 144  # type: ignore[arg-type]
    assert data["heads"] == ["5-5"]
    assert re.fullmatch(r"headscope:\S+\|model:mini@[0-9a-f]{8}\|text:[0-9a-f]{8}", str(data["signature"]))
    assert data["level"] == "word"
    assert "distant words" in str(data["why"])
    call(TEXT, "-o", tmp_path / "page.html", "--heads", "8-10,5-4", "--level", "word", "--specials", "hide")
    data = page_data(tmp_path / "page.html")
    assert (data["heads"], data["level"], data["specials"]) == (["8-10", "5-4"], "word", "hide")


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_a_picture_is_written(tmp_path: Path, suffix: str, start: bytes) -> None:
    call(TEXT, "--heads", "8-11", "-o", tmp_path / f"picture.{suffix}")
    assert (tmp_path / f"picture.{suffix}").read_bytes().startswith(start)


def test_letters_missing_from_the_font_of_a_picture_are_reported(tmp_path: Path) -> None:
    _, stderr = call("它 is a word", "-o", tmp_path / "a.png")
    assert "the figure's font has no 它" in stderr
    assert "font" not in call("它 is a word", "-o", tmp_path / "a.svg")[1]
    assert "它" in (tmp_path / "a.svg").read_text(encoding="utf-8")


PAIR = ("the rabbit quickly hopped", "the turtle slowly crawled")


def test_a_page_shows_all_heads_of_a_pair(tmp_path: Path) -> None:
    call(*PAIR, "--heads", "all", "--layer", "1-3,2", "-o", tmp_path / "page.html")
    page = tmp_path / "page.html"
    assert "<h1>mini reads “the rabbit quickly hopped / the turtle slowly crawled”</h1>" in page.read_text(encoding="utf-8")
    data = page_data(page)
    assert (data["view"], data["layers"], data["heads"], len(data["maps"])) == ("model", [1, 2, 3], ["1-1"], 144)  # type: ignore[arg-type]
    assert "why" not in data


def test_figures_of_all_heads_and_of_influence_are_drawn(tmp_path: Path) -> None:
    call(*PAIR, "--heads", "all", "--layer", "1-2", "-o", tmp_path / "heads.svg")
    drawn = (tmp_path / "heads.svg").read_text(encoding="utf-8")
    assert "the rabbit quickly hopped / the turtle slowly crawled" in drawn
    _, stderr = call(*PAIR, "--measure", "A,norm", "--layer", "mean,12", "--specials", "hide", "-o", tmp_path / "influence.svg")
    drawn = (tmp_path / "influence.svg").read_text(encoding="utf-8")
    for title in ("A, mean over 12 layers", "A, layer 12", "norms, mean over 12 layers", "norms, layer 12"):
        assert drawn.count(title) >= 1, title
    assert "|measure:A|measure:norms" in drawn
    assert stderr == ""


def test_influence_is_printed_and_written_to_a_page(tmp_path: Path) -> None:
    view = hs.view("mini", TEXT)
    expected = view.influence("rollout", 2)
    out, _ = call(TEXT, "--measure", "rollout", "--layer", "2")
    assert out.splitlines()[0] == "rollout, layer 2"
    word, value = expected.strongest(expected.rows.index("that"), 1)[0]
    assert re.search(rf"^ *that  \S+ +{value:.2f} {re.escape(word)}", out, re.MULTILINE)
    call(TEXT, "--measure", "rollout", "--layer", "2", "--highlight", "that->bought", "--highlight", "my", "-o", tmp_path / "page.html")
    data = page_data(tmp_path / "page.html")
    influence = data["influence"]
    assert isinstance(influence, dict)
    assert (data["view"], influence["measure"], influence["layer"]) == ("influence", "rollout", 2)
    assert list(influence["held"]) == ["A", "rollout", "norms"], "the measures that need one forward pass"
    assert "make the page with --measure G*" in influence["missing"]["G*"]
    packed = influence["held"]["rollout"]
    shares = np.frombuffer(base64.b64decode(packed["values"]), "<u2").reshape(12, len(view.text), -1) / 65535
    rebuilt = shares * np.array(packed["scales"])[:, None, None]
    assert_allclose(rebuilt[1], Influence(view.model, view.text).grid("rollout", 2, "token").weights, atol=1e-5)
    assert data["highlight"] == {"name": "that->bought, my", "pairs": {"encoder": [[6, 9], [7, None], [None, 7]]}}


def test_a_relation_of_an_annotated_sentence_is_highlighted(tmp_path: Path) -> None:
    call("sampler", "--sentence", "3", "--relation", "obj", "--heads", "8-4", "-o", tmp_path / "page.html")
    data = page_data(tmp_path / "page.html")
    forms = data["text"]["source"]["forms"]  # type: ignore[index]
    ((dependent, governor),) = data["highlight"]["pairs"]["encoder"]  # type: ignore[index]
    assert (forms[dependent], forms[governor]) == ("options", "gave")
    assert [dependent, governor, "obj"] in data["text"]["source"]["relations"]  # type: ignore[index]


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
    assert re.findall(r"^Head (\S+)", both, re.MULTILINE) == ["encoder/1-1", "cross/1-2", "decoder/2-1"]


def test_output_without_a_terminal_and_utf_8_is_plain_ascii() -> None:
    result = CliRunner(charset="ascii").invoke(app, ["view", TEXT, "--heads", "8-4"])
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert re.search(r"that  #{5}\s+0\.85 bought", result.stdout)
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_output_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (40, 80):
        for name, value in {"FORCE_COLOR": "1", "COLUMNS": str(width), "NO_COLOR": ""}.items():
            monkeypatch.setenv(name, value)
        printed, _ = call(TEXT, "--heads", "8-4")
        lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in printed.splitlines()[:-1]]
        assert max(map(len, lines)) <= width
        assert "\x1b[" in printed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([TEXT, "--heads", "13-1"], "mini has no head 13-1. Did you mean 3-1? Its heads are 1-1 to 12-12"),
        ([TEXT, "--heads", "cross/1-1"], "mini has no cross attention. It has encoder"),
        ([TEXT, "--heads", "eight"], "is not the name of a head"),
        ([TEXT, "--heads", ","], "no head was named"),
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
        ([TEXT, "--measure", "H", "-o", "a.svg"], "measure 'H' is unknown. Use one of A, G, G*, rollout, maxflow, norms"),
        ([TEXT, "--measure", ","], "no measure is named"),
        ([TEXT, "--measure", "A", "--layer", "13"], "mini has no layer 13. Its layers are 1 to 12; mean is their mean"),
        ([TEXT, "--measure", "A", "--layer", "last"], "'last' is not a list of layers"),
        ([TEXT, "--layer", "3"], "a layer is only for a measure or for all heads"),
        ([TEXT, "--heads", "all", "--layer", "mean", "-o", "a.svg"], "a mean over layers is only for measures of influence"),
        ([TEXT, "--heads", "all"], "Write a page or a figure: -o page.html, -o figure.pdf"),
        ([TEXT, "--measure", "A", "--heads", "8-4", "-o", "a.svg"], "a figure shows either heads or a measure"),
        ([TEXT, "--highlight", "key->table"], "'key' is not a word of the text. Its words are: The keys to the old"),
        ([TEXT, "--highlight", "keys->"], "'keys->' is not a pair of words"),
        ([TEXT, "--relation", "obj"], "Name one: headscope view FILE --sentence 3 --relation obj"),
        (["sampler", "--sentence", "3", "--relation", "vocative"], "the text has no vocative. It has "),
        (["sampler", "--sentence", "0"], "has no sentence '0'. Use its id (# sent_id) or a number from 1 to "),
        (["sampler", "And", "--sentence", "1"], "an annotated text cannot have a second text. Omit the second text"),
        (["nowhere.conllu", "--sentence", "1"], "nowhere.conllu"),
    ],
)
def test_invalid_arguments_are_refused_with_a_reason(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HeadscopeError, match=re.escape(says)):
        call(*arguments)
    assert not list(tmp_path.iterdir())


def test_an_error_is_one_line_and_exit_code_2(headscope: Callable[..., tuple[int, str, str]]) -> None:
    code, printed, error = headscope("view", TEXT, "-o", "page.docx")
    assert (code, printed, error.count("\n")) == (2, "", 1)


def test_a_long_text_is_cut_and_the_cut_is_reported(tmp_path: Path) -> None:
    _, stderr = call("word " * 2000, "--heads", "1-1,2-1", "-o", tmp_path / "page.html")
    assert re.search(r"headscope: 1,746 words cut off at the end; mini reads the first 256 tokens", stderr)
    assert "the page has 2 of 144 heads" in stderr
    assert sorted(page_data(tmp_path / "page.html")["maps"]) == ["1-1", "2-1"]  # type: ignore[call-overload]
    _, stderr = call("word " * 2000, "--max-length", "20", "-o", tmp_path / "page.html")
    assert "1,982 words cut off at the end" in stderr
    assert len(page_data(tmp_path / "page.html")["maps"]) == 144  # type: ignore[arg-type]


def test_help_contains_an_example() -> None:
    text = call("--help")[0]
    assert re.search(r"^  headscope view \"", text, re.MULTILINE)


GENERATED = ("The keys to the cabinet are on the", "--model", "mini-decoder", "--heads", "5-3", "--generate", "4")


def test_generated_tokens_are_listed() -> None:
    printed, notes = call(*GENERATED)
    before, _, after = printed.partition("generated:")
    assert [line.split()[0] for line in after.splitlines()[1:5]] == ["right", "hand", ",", "and"]
    assert [line.split()[0] for line in before.splitlines()[1:3]] == ["<|endoftext|>", "The"]
    assert printed.rstrip().endswith("|generate:4")
    assert (
        "mini-decoder wrote the last 4 tokens, greedily: each is the most probable one; it stopped because it reached the number" in notes
    )


def test_generated_tokens_are_shaded_in_a_figure(tmp_path: Path) -> None:
    call(*GENERATED, "--temperature", "0.8", "--seed", "3", "-o", tmp_path / "figure.svg")
    figure = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "generate:4|temperature:0.8|seed:3" in figure
    assert "the last 4 tokens are generated (shaded)" in figure
    assert figure.count("#dcf1eb") == 2, "shaded in both columns"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--model", "mini", "--generate", "4"), "mini guesses masked words: it cannot continue a text"),
        (("--temperature", "1"), "--temperature and --seed are only for generated text"),
        (("A second text", "--model", "mini-decoder", "--generate", "4"), "a model continues one text, not a pair"),
    ],
)
def test_invalid_generation_options_are_refused(options: tuple[str, ...], problem: str) -> None:
    with pytest.raises(HeadscopeError, match=problem):
        call("The keys", *options)
