"""How a replication is told its corpora, and what its folder is called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from headscope.core.paths import kind_of

_ROLE = re.compile(r"([a-z][a-z-]*)=(.+)", re.DOTALL)


def corpora_by_role(given: Sequence[str]) -> dict[str, list[str]]:
    """`treebank=a.conllu` and `b.conllu` as files by role; "" is the role of a file that is given without one."""
    found: dict[str, list[str]] = {}
    for text in given:
        parted = _ROLE.fullmatch(text) if kind_of(text) in ("missing", "unusable") else None
        role, path = parted.groups() if parted is not None else ("", text)
        found.setdefault(role, []).append(path)
    return found


def usual_folder(recipe: str | Path, model: str, corpora: Mapping[str, Sequence[str]]) -> Path:
    """Where results go if nobody says."""
    first = next((paths[0] for paths in corpora.values() if paths), "sampler")
    return Path("runs") / "-".join(Path(name).name.split(".")[0] for name in (str(recipe), model, first))
