"""The word list of the documentation: its phrases are found, and plain English is accepted."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[1] / "docs" / "tools"


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(TOOLS)
    return import_module("words")


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("The table has a row a head.", "a row a head"),
        ("A text that is too long is left out and said.", "left out and said"),
        ("The interval is clear of zero.", "clear of zero"),
        ("Two files were passed over: they are empty.", "passed over"),
        ("Each sentence is a document of\nits own.", "of its own"),
        ('"fields parted " "by tabs"', "parted by"),
        ("# what the score\n# makes no\n# sense of", "makes no sense"),
        ("This choice flatters the head.", "flatters"),
    ],
)
def test_a_phrase_of_the_list_is_found(words: ModuleType, text: str, phrase: str) -> None:
    ((_, found, instead),) = words.hits(text)
    assert found == phrase
    assert instead


@pytest.mark.parametrize(
    "text",
    [
        "The table has one row per head.",
        "Texts that are too long are omitted and reported.",
        "The run passes over the corpus twice and reads 65,000 tokens a second.",
        "A measure of your own is a class; its own state is merged.",
        "The speed is said to be the same.",
    ],
)
def test_plain_english_is_accepted(words: ModuleType, text: str) -> None:
    assert list(words.hits(text)) == []


def test_each_hit_is_reported_in_one_line_with_its_place_and_code_is_ignored(words: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# A page\n\n    passed over: 3\n\n```\npassed over\n```\n\nNot `passed over`, but drawn\nby lot.\n")
    (tmp_path / "code.py").write_text('"""One row per head."""\nFOUND = "3 files passed over"\n')
    lines = words.check(tmp_path, ("*.md", "*.py"))
    assert lines == ["code.py:2: 'passed over'. Write: skipped", "page.md:10: 'by lot'. Write: at random"]


def test_every_pattern_of_checked_files_matches_a_file(words: ModuleType) -> None:
    for name in words.CHECKED:
        assert list(words.ROOT.glob(name)), name
