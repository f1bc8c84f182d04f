"""The commands and the Python code on a page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
# Names that the Python code of the README uses but does not define: the maps of another tool, and their tokens.
FROM_THE_READER = "import numpy\nattention = numpy.full((2, 2, 3, 3), 1 / 3)\ntokens = ['[CLS]', 'a', '[SEP]']\n"
_IN_BLOCKS = r"^ {4}(?:cat \S+ \| )?"


def commands(page: Path, inline: bool = True) -> list[str]:
    """The commands on a page, without comments, ellipses, pipes and redirections. With `inline`, also the commands in
    sentences and tables.
    """
    begins = rf"(?:{_IN_BLOCKS}|`)" if inline else _IN_BLOCKS
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))  # a command may continue on the next line
    lines = re.findall(rf"{begins}(headscope [a-z][^`\n]*)", text, re.MULTILINE)
    parts = [re.split(r"\s+#|\s{3,}|\s[|>]\s|…| \.\.\.", line)[0].strip() for line in lines]
    return [re.sub(r"(?<=\w)\.\.\.", "", part) for part in parts]


def python_of(page: Path) -> list[str]:
    """The blocks of Python code on a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
