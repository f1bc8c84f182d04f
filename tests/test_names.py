"""Names: one public class per name, modules called by what they hold, packages small enough to look through."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "headscope"
MOST = 25  # modules that lie directly in a package
# Words that say what was done, or that are metaphors of ours: no module, public class or public function is called so.
PRIVATE_WORDS = {
    *("asking", "ahead", "crew", "desk", "flattery", "found", "hang", "held", "kept", "kitchen", "one", "own", "parcel"),
    *("sense", "shelf", "stillborn", "trying"),
}
ALLOWED = {"measures/own.py"}  # measures of a user's own


def words(name: str) -> set[str]:
    """The words of a name, in whichever way it is written."""
    spaced = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return set(spaced.split("_"))


def public_classes() -> dict[str, list[str]]:
    """Where each public class is defined, by its name."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCES)))
    return places


def test_no_two_public_classes_have_one_name() -> None:
    assert {name: places for name, places in public_classes().items() if len(places) > 1} == {}


def test_names_are_words_of_the_field() -> None:
    modules = {str(path.relative_to(SOURCES)): words(path.stem) for path in SOURCES.rglob("*.py")}
    classes = {f"{places[0]}: {name}": words(name) for name, places in public_classes().items()}
    private = {where for where, parts in {**modules, **classes}.items() if parts & PRIVATE_WORDS}
    assert private - ALLOWED == set()


def test_no_package_holds_more_modules_than_a_person_looks_through() -> None:
    sizes = {path: len([file for file in path.glob("*.py") if file.name != "__init__.py"]) for path in SOURCES.rglob("*") if path.is_dir()}
    assert {str(path.relative_to(SOURCES)): size for path, size in sizes.items() if size > MOST} == {}
