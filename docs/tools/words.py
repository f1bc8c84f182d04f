"""Fail if a text uses a phrase of the word list: `python docs/tools/words.py`. Code on a page is not
checked. CONTRIBUTING.md has the glossary.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECKED = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/api/*.md", "mkdocs.yml", "docs/tools/*.toml", "src/headscope/**/*.py")
CHECKED += ("benchmarks/*.py", "src/headscope/**/*.jinja", "src/headscope/recipes/*.toml", "frontend/src/**/*.ts", "frontend/src/**/*.tsx")
CHECKED += ("tests/*/**/*.py",)

_PER = r"an? (?:column|document|head|label|layer|line|pair|quantity|relation|row|sentence|slice|text|token|word)"
INSTEAD = {  # a phrase that is never right, and what to write. Between words of a phrase any white space may stand
    r"an? (?:row|line|phrase|number|column|point) " + _PER: "one … per …",
    r"bears? on each other": "influence between words",
    r"(?:is|was|are|were) asked for": "is requested, or: name who asks",
    r"be it that": "whether",
    r"by lot": "at random",
    r"by nobody's hand": "automatically",
    r"clear (?:of|from) (?:0|zero)": "significantly (95 % interval excludes 0)",
    r"papers done again": "replications",
    r"drawing lots": "guessing at random",
    r"flatter(?:s|ed|y|ing)": "selection bias",
    r"for want of": "for lack of",
    r"in (?:a|one|no|some|another) head's hands|in nobody's hands?": "a head captures …",
    r"left out and said|(?:which|that) is said(?! to\b)": "omitted and reported",
    r"makes? no sense": "is invalid, or: is damaged",
    r"mean no good": "send invalid or hostile requests",
    r"near twins?": "near-duplicates",
    r"nobody(?:'s| says)": "name the subject, or use the passive",
    r"of (?:its|their) own": "delete, or: separate",
    r"parted (?:at|by)": "separated by",
    r"passed over": "skipped",
    r"so that none waits": "to avoid waiting",
    r"(?:to|can|cannot|could|may) be had": "is available",
    r"told (?:apart|from)": "distinguished from",
    r"mended": "fixed",
    r"anew": "again",
    r"spoilt": "damaged",
    r"forthwith|hitherto|lest|thence|therein|thereof|whence|wherein|whereof": "a current word",
}
_GAP = r"""[\s"'#]+"""  # also the end of a string, or of a comment's line, within a phrase
PATTERNS = {re.compile(rf"\b(?:{phrase.replace(' ', _GAP)})\b", re.IGNORECASE): use for phrase, use in INSTEAD.items()}
_CODE = re.compile(r"^(```).*?^```|^(?: {4}|\t)(?! *[-*\d]).*?$|(`+)[^`].*?\2", re.MULTILINE | re.DOTALL)


def prose(page: str) -> str:
    """A Markdown page with its code blanked out, and its lines where they were."""
    return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), page)


def hits(text: str) -> Iterator[tuple[int, str, str]]:
    """The line, the phrase and the replacement of every phrase of the list in a text."""
    for pattern, use in PATTERNS.items():
        for found in pattern.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, re.sub(_GAP, " ", found.group()), use


def check(root: Path, names: tuple[str, ...]) -> list[str]:
    """One line per hit in the files that the glob patterns name."""
    lines = []
    for path in sorted(set(chain.from_iterable(map(root.glob, names)))):
        text = path.read_text(encoding="utf-8")
        for line, phrase, use in sorted(hits(prose(text) if path.suffix == ".md" else text)):
            lines.append(f"{path.relative_to(root).as_posix()}:{line}: {phrase!r}. Write: {use}")
    return lines


if __name__ == "__main__":
    faults = check(ROOT, CHECKED)
    print("\n".join(faults) or "no phrase of the word list")
    sys.exit(bool(faults))
