"""Names in the source: class names are unique, names use terms of the field, and packages are small."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "headscope"
MAX_MODULES = 25  # the maximum number of modules in a package, without those of subpackages
# Metaphors, and words that do not describe a content: no name of a module or a public class contains one.
AVOIDED_WORDS = {
    *("asking", "ahead", "crew", "desk", "flattery", "found", "hang", "held", "kept", "kitchen", "one", "own", "parcel"),
    *("sense", "shelf", "stillborn", "trying"),
}
ALLOWED = {"measures/own.py"}  # user-defined measures


def words(name: str) -> set[str]:
    """The words of a name in snake_case or CamelCase."""
    spaced = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return set(spaced.split("_"))


def public_classes() -> dict[str, list[str]]:
    """The files that define each public class, by the name of the class."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCES)))
    return places


def test_no_two_public_classes_have_the_same_name() -> None:
    assert {name: places for name, places in public_classes().items() if len(places) > 1} == {}


def test_names_of_modules_and_classes_contain_no_avoided_word() -> None:
    modules = {str(path.relative_to(SOURCES)): words(path.stem) for path in SOURCES.rglob("*.py")}
    classes = {f"{places[0]}: {name}": words(name) for name, places in public_classes().items()}
    avoided = {where for where, parts in {**modules, **classes}.items() if parts & AVOIDED_WORDS}
    assert avoided - ALLOWED == set()


def test_no_package_has_more_than_the_maximum_number_of_modules() -> None:
    sizes = {path: len([file for file in path.glob("*.py") if file.name != "__init__.py"]) for path in SOURCES.rglob("*") if path.is_dir()}
    assert {str(path.relative_to(SOURCES)): size for path, size in sizes.items() if size > MAX_MODULES} == {}
