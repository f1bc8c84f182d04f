"""The design system has one source: pages, figures and the documentation site use its values."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from headscope.drawing.theme import COLOURS
from headscope.drawing.words import INK, LINE, RED
from headscope.views.tokens import Theme, tokens

ROOT = Path(__file__).parents[2]


def test_figures_use_the_palette_of_the_pages() -> None:
    light = tokens("light")
    assert [colour.lower() for colour in COLOURS[:6]] == [light[f"--hs-s{number}"] for number in range(1, 7)]
    assert (INK, LINE.lower(), RED) == (light["--hs-ink"], light["--hs-s1"], light["--hs-red"])


@pytest.mark.skipif(not (ROOT / "docs" / "site.css").is_file(), reason="the documentation is missing")
def test_the_style_sheet_of_the_site_matches_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "tools")
    tool = import_module("tokens")
    sheet = tool.SHEET.read_text(encoding="utf-8")
    assert tool.with_tokens(sheet) == sheet, "run python docs/tools/tokens.py"


def test_no_style_sheet_uses_an_undeclared_property() -> None:
    package = ROOT / "src" / "headscope"
    sources = [*package.rglob("*.css"), *package.rglob("*.jinja"), *(ROOT / "frontend" / "src").rglob("*.*"), ROOT / "docs" / "site.css"]
    for path in sources:
        used = set(re.findall(r"var\((--hs-[a-z0-9-]+)\)", path.read_text(encoding="utf-8"))) if path.is_file() else set()
        assert used <= set(tokens("light")), path


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast_on_every_surface(theme: Theme) -> None:
    values = tokens(theme)
    for text in ("ink", "faint", "accent", "red", "good", "bad", "open"):
        for surface in ("paper", "soft"):
            assert contrast(values[f"--hs-{text}"], values[f"--hs-{surface}"]) >= 4.5, (text, surface)
    assert contrast(values["--hs-accent"], values["--hs-accent-soft"]) >= 4.5
    for series in range(1, 7):
        assert contrast(values[f"--hs-s{series}"], values["--hs-paper"]) >= 2.1, series


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, as WCAG 2 defines it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
