"""The design system's values (tokens.css), and style sheets that declare them for a page."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Literal

Theme = Literal["light", "dark"]

_PROPERTY = re.compile(r"^\s*(--hs-[a-z0-9-]+):\s*(.+);$", re.MULTILINE)
_PAIR = re.compile(r"light-dark\((.+), (.+)\)")


@cache
def tokens(theme: Theme) -> dict[str, str]:
    """Every property with its value in a theme: `--hs-ink` is `#1b1f24` in light."""
    text = (files("headscope.views") / "tokens.css").read_text(encoding="utf-8")
    side = 1 if theme == "light" else 2
    return {name: pair[side] if (pair := _PAIR.fullmatch(value)) else value for name, value in _PROPERTY.findall(text)}


@cache
def declared(theme: Theme) -> str:
    """The declarations of a theme. For the dark theme these are only its colours, because the rest is equal."""
    light = tokens("light")
    return ";".join(f"{name}:{value}" for name, value in tokens(theme).items() if theme == "light" or value != light[name])


@cache
def page_sheet() -> str:
    """The properties for a whole page: light, and dark if the system prefers it. The browser need not support
    `light-dark()`.
    """
    return f":root{{color-scheme:light dark;{declared('light')}}}@media(prefers-color-scheme:dark){{:root{{{declared('dark')}}}}}"
