"""Write docs/papers.md from docs/tools/papers.toml: `python docs/tools/papers.py`.

With `--thumbnails` its pictures are drawn, too, from the embedded model and corpus, which takes some minutes; runs
and studies in the folder `--folders` are used again, and left there.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
PAGE, LIST, IMG = DOCS / "papers.md", Path(__file__).with_suffix(".toml"), DOCS / "img" / "papers"
WIDTH = 240  # pixels of a thumbnail
_FOLDER = re.compile(r"\b[A-Z]{4,}\b|\bRUN\b|\bEDGE\b")


def listed() -> dict[str, Any]:
    """The list of papers as it stands."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def rows(given: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The rows of all papers."""
    return (row for paper in given["papers"] for row in paper["rows"])


def folders_in(command: str, given: dict[str, Any]) -> list[str]:
    """The folders that a command names."""
    return [name for name in dict.fromkeys(_FOLDER.findall(command)) if name in given["folders"]]


def page(given: dict[str, Any]) -> str:
    """The page in Markdown."""
    parts = [given["head"], *(f"    {folder['command']}\n" for folder in given["folders"].values())]
    for paper in given["papers"]:
        parts.append(f"\n## {paper['title']}\n\nMore: [page]({paper['page']}); all claims: `headscope replicate {paper['recipe']}`.\n\n")
        parts.append("| in the paper | command | our figure | differences |\n|---|---|---|---|\n")
        for row in paper["rows"]:
            picture = f"![{row['what'].split(':')[0]}](img/papers/{row['thumbnail']}.png)" if "thumbnail" in row else ""
            differs = re.sub(r"\b([a-z-]+)\.md\b", r"[\1](\1.md)", row["differs"])
            parts.append(f"| {row['what']} | `{row['command']}` | {picture} | {differs} |\n")
    return "".join(parts)


def placed(command: str, folder: Path, given: dict[str, Any]) -> list[str]:
    """The arguments of a command whose folders and files lie in a folder."""
    words = shlex.split(command)[1:]  # without the name of the program
    names = given["folders"]
    return [str(folder / word) if word in names or before == "-o" else word for before, word in zip(["", *words], words, strict=False)]


def thumbnails(folder: Path, given: dict[str, Any]) -> None:
    """Draw every row that has a thumbnail, as a small picture."""
    from PIL import Image

    IMG.mkdir(parents=True, exist_ok=True)
    for row in rows(given):
        if "thumbnail" not in row:
            continue
        for name in folders_in(row["command"], given):
            if not (folder / name).exists():
                made = given["folders"][name]
                _run([*placed(made["command"], folder, given), *shlex.split(made["medium"]), "-q"])
        target = folder / f"{row['thumbnail']}.png"
        command = re.sub(r"-o \S+", f"-o {target.name}", row["command"])
        _run(placed(command, folder, given))
        with Image.open(target) as picture:
            small = picture.convert("RGB")
            small.thumbnail((WIDTH, 2 * WIDTH), Image.Resampling.LANCZOS)
            small.quantize(64, Image.Quantize.FASTOCTREE).save(IMG / target.name, optimize=True)


def _run(arguments: list[str]) -> None:
    print("headscope", *arguments, file=sys.stderr)
    subprocess.run([sys.executable, "-m", "headscope", *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--thumbnails", action="store_true")
    parser.add_argument("--folders", type=Path)
    chosen = parser.parse_args()
    if chosen.thumbnails:
        with tempfile.TemporaryDirectory() as made:
            thumbnails(chosen.folders or Path(made), listed())
    PAGE.write_text(page(listed()), encoding="utf-8")
