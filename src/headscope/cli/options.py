"""Parsers of option values: lists, ranges, pairs; and help texts with examples."""

from __future__ import annotations

import tomllib
from inspect import cleandoc
from pathlib import Path
from typing import Any

from headscope.errors import RunError


def examples(help: str | None) -> str:
    """A help text whose example lines stay as they are written, where the terminal would otherwise join them."""
    paragraphs = cleandoc(help or "").split("\n\n")
    return "\n\n".join(f"\b\n{text}" if text.startswith("headscope ") else text for text in paragraphs)


def names(value: str) -> list[str]:
    """`positions,entropy` as a list."""
    return [name.strip() for name in value.split(",") if name.strip()]


def numbers(value: str) -> list[int]:
    """`1-3,8` as 1, 2, 3, 8."""
    layers: list[int] = []
    for part in names(value):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise RunError(f"{value!r} is not a list of layers", "Write numbers and ranges, as in 1-4,12")
        layers.extend(range(int(first), int(last or first) + 1))
    if not layers:
        raise RunError(f"{value!r} names no layer", "Write numbers and ranges, as in 1-4,12")
    return layers


def choices(values: list[str]) -> dict[str, str]:
    """`genre=news` and the like as values by column."""
    chosen = {}
    for value in values:
        column, equals, text = value.partition("=")
        if not equals or not column:
            raise RunError(f"{value!r} is not of the form COLUMN=VALUE", "Write it as in --where genre=news")
        chosen[column] = text
    return chosen


def measure_options(values: list[str]) -> dict[str, dict[str, Any]]:
    """`entropy.smoothing=1e-4` as options by measure; a value is read as TOML or, if it is not TOML, as plain text."""
    options: dict[str, dict[str, Any]] = {}
    for value in values:
        key, equals, text = value.partition("=")
        measure, dot, option = key.partition(".")
        if not equals or not dot or not measure or not option:
            raise RunError(f"option {value!r} is not of the form MEASURE.OPTION=VALUE", "Write it as in -O entropy.level=word")
        try:
            parsed: Any = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            parsed = text
        options.setdefault(measure, {})[option] = parsed
    return options


def check_page(path: Path) -> None:
    """Raise an error if a file for a page does not have the name of a page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise RunError(f"{path} is not a name of a page", "Use a name that ends in .html")
