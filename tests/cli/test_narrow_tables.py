"""Tables in terminals of several widths, and without a terminal."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import headscope as hs
from headscope.cli.printing.columns import fit, total_width
from headscope.cli.printing.tables import print_table
from headscope.cli.printing.text import print_text
from headscope.cli.replicate import _cells, _print_blocks, _print_columns
from headscope.results.results import Results
from headscope.results.table import Table

Headscope = Callable[..., tuple[int, str, str]]
WIDTHS = (80, 100, 160)
LABELS = ("nsubj", "obl:unmarked", "acl:relcl", "det")
BEST = {
    "kind": ["encoder"] * 4, "label": LABELS, "n": [511, 31, 77, 627], "documents": [19, 14, 18, 19],
    "heads": ["8-11", "10-2 | 9-12", "9-5 | 9-6", "3-10"], "direction": ["dep-to-head", "dep-to-head | head-to-dep"] * 2,
    "value": [0.6008, 0.2258, 0.2078, 0.9681], "low": [0.5582, 0.0588, 0.1038, 0.9087], "high": [0.6464, 0.4839, 0.3333, 1.0],
    "rule": ["+1", "+1 | -2", "-3", "+1"], "baseline": [0.4736, 0.1613, 0.2338, 0.7368], "baseline_low": [0.4435, 0.0, 0.15, 0.6864],
    "baseline_high": [0.5, 0.43, 0.32, 0.79], "lift": [0.1272, 0.0645, -0.026, 0.2313], "lift_low": [0.08, -0.1, -0.16, 0.17],
    "lift_high": [0.18, 0.3, 0.11, 0.3], "in_sample_head": ["8-11", "1-2", "9-5", "3-10"], "in_sample": [0.6008, 0.3, 0.31, 0.9681],
}  # fmt: skip


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A function that makes the output a terminal of a given width."""

    def resize(width: int) -> None:
        for name, value in {"COLUMNS": str(width), "FORCE_COLOR": "1", "TERM": "xterm"}.items():
            monkeypatch.setenv(name, value)

    return resize


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("narrow") / "encoder"
    hs.run("mini", "sampler", ["relations", "distances", "tokens"], limit=6, replicates=10, gallery=0, out=out)
    return out


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("narrow") / "decoder"
    hs.run("mini-decoder", "sampler", ["relations", "sequences", "entropy"], limit=6, replicates=10, gallery=0, out=out)
    return out


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]


def printed(capsys: pytest.CaptureFixture[str], table: Table) -> list[str]:
    capsys.readouterr()
    print_table(table, "title", all_columns="--format tsv")
    return lines_of(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("width", "columns", "hidden"),
    [
        (80, "label n heads value rule baseline", "documents, direction, lift, in_sample_head, in_sample"),
        (100, "label n heads value rule baseline lift", "documents, direction, in_sample_head, in_sample"),
        (140, "label n documents heads direction value rule baseline lift", "in_sample_head, in_sample"),
        (160, "label n documents heads direction value rule baseline lift in_sample_head in_sample", ""),
        (200, "kind label n documents heads direction value rule baseline lift in_sample_head in_sample", ""),
    ],
)
def test_wider_terminals_show_more_columns(
    capsys: pytest.CaptureFixture[str], terminal: Callable[[int], None], width: int, columns: str, hidden: str
) -> None:
    terminal(width)
    lines = printed(capsys, Table.of(BEST))
    text = "\n".join(lines)
    assert columns.split() in [line.split() for line in lines]
    assert max(map(len, lines)) <= width
    assert "…" not in text
    assert re.search(r"^(encoder  )?obl:unmarked .* 0\.23 \[0\.06 0\.48\]  \+1 \| -2  0\.16 \[0\.00 0\.43\]", text, re.MULTILINE)
    assert ("in all rows: kind encoder" in text) == (width < 200)
    assert (f"not shown, for lack of width: {hidden}; all columns: --format tsv" in " ".join(lines)) == bool(hidden)
    assert hidden or "not shown" not in text


def test_piped_tables_have_all_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = printed(capsys, Table.of(BEST))
    (header,) = [line for line in lines if line.lstrip().startswith("kind")]
    assert header.split() == [*BEST]
    rows = [line for line in lines if line.lstrip().startswith("encoder")]
    assert [row.split()[1] for row in rows] == [*LABELS]
    assert "0.5582" in rows[0]
    assert len(lines) == 10, "one title, header, rule and note, four rows, and two edges"


def test_wide_tables_are_stacked_and_then_split_into_parts(capsys: pytest.CaptureFixture[str], terminal: Callable[[int], None]) -> None:
    compared = {
        "label": ["nsubj", "obj"], "A": ["0.458 [0.444 0.472] (3-10)", "0.82 [0.78 0.85] (8-4)"],
        "B": ["0.356 [0.346 0.366] (1-1)", "0.37 [0.31 0.48] (2-2)"], "B − A": ["-0.102 [-0.120 -0.090] *", "-0.45 [-0.52 -0.35] *"],
    }  # fmt: skip
    table = Table.of(compared)
    terminal(60)
    lines = printed(capsys, table)
    start = lines.index(next(line for line in lines if line.startswith("nsubj")))
    assert lines[start].split() == ["nsubj", "0.458", "(3-10)", "0.356", "(1-1)", "-0.102", "*"]
    assert lines[start + 1].split() == ["[0.444", "0.472]", "[0.346", "0.366]", "[-0.120", "-0.090]"]
    terminal(30)
    lines = printed(capsys, table)
    assert sum(line.startswith("nsubj") for line in lines) == 3, "each part repeats the label"
    assert max(map(len, lines)) <= 30


def test_phrases_are_wrapped_between_words(capsys: pytest.CaptureFixture[str], terminal: Callable[[int], None]) -> None:
    terminal(60)
    what = "verbs and core arguments: correlation with the distance in the tree, best layer"
    lines = printed(capsys, Table.of({"part": ["trees", "chain"], "what": [what, "short"], "value": [0.49, 0.1]}))
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(line[7:49] for line in lines).split()).count(what) == 1


def test_numbers_have_the_digits_that_their_interval_needs() -> None:
    table = Table.of(
        {"value": [0.5, 0.002, 1.0, np.nan, -0.001], "low": [0.4, 0.0018, 1.0, np.nan, -0.1], "high": [0.6, 0.0023, 1.0, np.nan, 0.1]}
    )
    assert fit(table, 80).cells["value"] == ["0.50 [0.40 0.60]", "0.0020 [0.0018 0.0023]", "1.00 [1.00 1.00]", "–", "0.00 [-0.10 0.10]"]


@given(
    st.lists(st.text("abcdef ghijkl:-", min_size=1, max_size=30), min_size=1, max_size=4),
    st.lists(st.floats(-2, 2), min_size=1, max_size=8),
    st.integers(12, 200),
)
def test_no_label_is_shortened_at_any_width(labels: list[str], numbers: list[float], width: int) -> None:
    columns = {
        "label": labels,
        **{f"column {place}": [number] * len(labels) for place, number in enumerate(numbers)},
        "n": [7] * len(labels),
    }
    layout = fit(Table.of(columns), width)
    shown = {name for part in layout.parts for name in part}
    printed_once = {name for name in columns if f"{name} " in f", {layout.same}"}
    assert shown | printed_once | {*layout.hidden} == {*columns}
    for part in layout.parts:
        assert total_width(layout.cells, part) <= width or len(part) <= 2
    if "label" in shown:
        assert ["".join(cell.split()) for cell in layout.cells["label"]] == ["".join(label.split()) for label in labels]


@pytest.mark.parametrize("width", WIDTHS)
def test_all_tables_of_runs_fit_the_terminal(
    headscope: Headscope, terminal: Callable[[int], None], encoder: Path, decoder: Path, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    terminal(width)
    for folder in (encoder, decoder):
        results = Results.open(folder)
        for name in results:
            table = results[name].head(30)
            lines = printed(capsys, table)
            assert max(map(len, lines)) <= width, name
            assert "…" not in "".join(lines), name
            for column in {"label", "heads", "quantity", "a"} & {*table.columns}:
                assert all(str(value) in "\n".join(lines) for value in table[column]), (name, column)
        for command in (["show", folder], ["heads", folder]):
            _, text, _ = headscope(*command)
            long = [line for line in lines_of(text) if len(line) > width and str(folder) not in line]
            assert not long, command


@pytest.mark.parametrize("width", [*WIDTHS, None])
def test_compare_shows_the_difference_at_every_width(
    headscope: Headscope, terminal: Callable[[int], None], encoder: Path, tmp_path: Path, width: int | None
) -> None:
    other = tmp_path / "a-rather-long-name-of-a-folder"
    shutil.copytree(encoder, other)
    if width is not None:
        terminal(width)
    code, text, _ = headscope("compare", encoder, other, "--table", "overall")
    assert code == 0
    lines = lines_of(text)
    assert "2 − 1" in text
    assert "1: encoder" in text
    assert "…" not in text
    assert {"to_cls", "own_layer"} <= {*text.split()}
    if width is not None:
        assert max(len(line) for line in lines) <= width


def test_text_is_wrapped_only_in_terminals(capsys: pytest.CaptureFixture[str], terminal: Callable[[int], None]) -> None:
    signature = "headscope:1.0.0|model:mini@47eb8ac0|corpus:sampler@ba4c9df8|measures:positions,tokens|run:82dfd84d"
    sentence = "Heads of one layer are closer to each other than to heads of other layers."
    print_text(f"{sentence}\n{signature}")
    assert capsys.readouterr().out == f"{sentence}\n{signature}\n"
    terminal(40)
    print_text(f"{sentence}\n{signature}")
    lines = lines_of(capsys.readouterr().out)
    assert max(map(len, lines)) <= 40
    assert " ".join(lines[:2]) == sentence
    assert "".join(lines[2:]) == signature
    assert all(line.endswith("|") for line in lines[2:-1])


@pytest.mark.parametrize("width", [80, 130, None])
def test_claims_of_a_paper_fit_the_terminal(capsys: pytest.CaptureFixture[str], terminal: Callable[[int], None], width: int | None) -> None:
    if width is not None:
        terminal(width)
    says = "Head 8-10 finds the object of a verb better than a fixed offset does, by a wide margin, in BERT base"
    row = {
        **{"step": "relations", "step_title": "Relations", "place": "Table 1", "says": says, "unit": "%", "published": "86.8"},
        **{
            "ours": "81.9 [78.0 85.5]",
            "n": 370,
            "n_counts": "words",
            "documents": 19,
            "verdict": "same direction",
            "said": "another model",
        },
    }
    show = _print_blocks if width == 80 else _print_columns
    show([_cells(row)], Console(highlight=False))
    lines = lines_of(capsys.readouterr().out)
    text = "\n".join(lines)
    assert {"86.8", "81.9", "370", "19*", "8-10", "margin,"} <= {*text.replace(";", "").split()}
    if width is not None:
        assert max(map(len, lines)) <= width
    if width != 130:
        assert says in " ".join(text.split())
