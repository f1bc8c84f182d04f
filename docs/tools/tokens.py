"""Write the design system's values into docs/site.css, for light and dark: `python docs/tools/tokens.py`."""

from __future__ import annotations

import re
from pathlib import Path

from headscope.views.tokens import declared

SHEET = Path(__file__).parents[1] / "site.css"
_COPY = re.compile(r"(/\* tokens:[^\n]*\*/\n).*?(/\* end of tokens \*/)", re.DOTALL)


def with_tokens(sheet: str) -> str:
    """A style sheet with a new copy of the design system's values; raise ValueError if it has no place for one."""
    light = declared("light").replace(";", ";\n  ")
    dark = declared("dark").replace(";", ";\n  ")
    copy = f':root {{\n  {light};\n}}\n[data-md-color-scheme="slate"] {{\n  {dark};\n}}\n'
    made, places = _COPY.subn(lambda found: f"{found[1]}{copy}{found[2]}", sheet)
    if places != 1:
        raise ValueError("the style sheet has no comments that say where the tokens begin and end")
    return made


if __name__ == "__main__":
    SHEET.write_text(with_tokens(SHEET.read_text(encoding="utf-8")), encoding="utf-8")
