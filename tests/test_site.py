"""The documentation site: every page is in the nav once, every link and anchor has a target, and nothing is loaded from
other hosts.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import headscope as hs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if DOCS / "sampler" not in path.parents)  # docs/sampler is not part of the site
FENCED = re.compile(r"^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
GENERATED = {DOCS / "try" / "report.html", DOCS / "try" / "sentences.html"}  # written by docs/tools/try_it.py before a build
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")


def prose(path: Path) -> str:
    """The text of a page without its code."""
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a page, in the form of Python-Markdown."""
    found: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        names.add(slug if not found[slug] else f"{slug}_{found[slug]}")
        found[slug] += 1
    return names


def pages_of(nav: Any) -> list[str]:
    """The pages listed in a nav."""
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in pages_of(part)]


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    loaded: dict[str, Any] = import_module("yaml").safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return loaded


def test_every_page_is_in_the_nav_once(config: dict[str, Any]) -> None:
    assert sorted(pages_of(config["nav"])) == sorted(path.relative_to(DOCS).as_posix() for path in PAGES)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_and_anchor_has_a_target(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_file() or target in GENERATED, f"{page.name} links to {link}"
        if page.is_relative_to(DOCS):
            assert target.is_relative_to(DOCS), f"{link} is not part of the site"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name} links to {link}; the anchors of {target.name} are {sorted(anchors(target))}"


def test_anchors_and_links_in_code_are_ignored(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two` three\n\n## One two three\n\n```\n# no heading\n[no](link)\n```\n\n[a](b.md#c), ![d](e.svg), `[f](g)`\n")
    assert anchors(page) == {"one-two-three", "one-two-three_1"}
    assert LINK.findall(prose(page)) == ["b.md#c", "e.svg"]


def test_every_picture_is_shown_on_a_page() -> None:
    shown = {link.rpartition("/")[2] for page in (ROOT / "README.md", *PAGES) for link in LINK.findall(prose(page))}
    assert {path.name for path in (DOCS / "img").rglob("*.*")} <= shown


def test_every_public_name_is_in_the_reference_and_has_an_example() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    for name in hs.__all__:
        assert f"\n::: headscope.{name}\n" in text, name
        assert f"`{name}`" in text, name
        assert ">>> " in (getattr(hs, name).__doc__ or ""), f"{name} has no example"


def test_remote_resources_are_disabled_in_the_config_and_found_by_the_check(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make docs` runs this check on the built pages."""
    monkeypatch.syspath_prepend(str(DOCS / "tools"))
    check = import_module("check")
    assert config["theme"]["font"] is False
    assert config["extra"]["polyfills"] == ["js/iframe-worker.js"]
    (tmp_path / "good.html").write_text('<a href="https://x.org">x</a><link rel="canonical" href="https://x.org"><img src="a.svg">')
    assert check.remote(tmp_path) == []
    (tmp_path / "bad.html").write_text('<script src="https://cdn.org/a.js"></script><link rel="stylesheet" href="//cdn.org/b.css">')
    (tmp_path / "bad.css").write_text("@font-face { src: url(https://fonts.org/c.woff2) }")
    assert len(check.remote(tmp_path)) == 3
    del sys.modules["check"]


def test_the_demo_pages_have_twenty_sentences_and_name_packages_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS / "tools")
    tool = import_module("try_it")
    assert set(tool.PAGES.values()) == GENERATED
    assert len({sentence.text for sentence in tool.SENTENCES}) == 20, "the headings state this number"
    assert {path.parent.name for path in (ROOT / "src" / "headscope").glob("*/__init__.py")} | {"recipes"} >= tool.WITHOUT
    packages = {path.name for path in (ROOT / "src" / "headscope").iterdir()}
    assert {"measures", "engine", "models", "stats", "results", "gallery"} <= packages - tool.WITHOUT, (
        "a change in these packages makes a new run necessary"
    )


def test_the_diagram_of_the_architecture_matches_the_import_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS / "tools")
    tool = import_module("architecture")
    assert tool.PICTURE.read_text(encoding="utf-8") == tool.picture(), "run python docs/tools/architecture.py"
    drawn = {package for layer in tool.layers() for package in layer}
    packages = {path.parent.name for path in (ROOT / "src" / "headscope").glob("*/__init__.py")}
    assert drawn == packages, "every package is in the contract"
