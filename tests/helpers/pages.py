"""The commands and the Python of a page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
# What the Python of the README takes from the reader: maps of another tool, and their tokens.
FROM_THE_READER = "import numpy\nattention = numpy.full((2, 2, 3, 3), 1 / 3)\ntokens = ['[CLS]', 'a', '[SEP]']\n"
_IN_BLOCKS = r"^ {4}(?:cat \S+ \| )?"


def commands(page: Path, inline: bool = True) -> list[str]:
    """The commands of a page, without comments, placeholders for more, and what their output goes to; those inside
    sentences and tables only if `inline`.
    """
    begins = rf"(?:{_IN_BLOCKS}|`)" if inline else _IN_BLOCKS
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))  # a command may go on in the next line
    lines = re.findall(rf"{begins}(headscope [a-z][^`\n]*)", text, re.MULTILINE)
    parts = [re.split(r"\s+#|\s{3,}|\s[|>]\s|…| \.\.\.", line)[0].strip() for line in lines]
    return [re.sub(r"(?<=\w)\.\.\.", "", part) for part in parts]


def python_of(page: Path) -> list[str]:
    """The blocks of Python of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
