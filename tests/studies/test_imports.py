"""Saved results are viewed without torch and transformers: both take seconds to import, and the machine on which
results are viewed may not have them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from headscope.results.results import Results
from headscope.studies.registry import REGISTRY
from helpers.small import SmallStudies

# A script that executes the commands while imports of torch and transformers fail. It prints which lines of headscope
# import them in which step, and which steps fail.
_CODE = """
import json, sys, traceback
from importlib import import_module
from importlib.abc import MetaPathFinder

asked = {}
step = []

class Refusing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "transformers"):
            frames = [frame for frame in traceback.extract_stack() if "/headscope/" in frame.filename]
            lines = [f"{frame.filename.rpartition('/headscope/')[2]}:{frame.lineno} {frame.line}" for frame in frames]
            asked.setdefault("\\n    ".join([name, *lines]), []).append(" ".join(step))
            raise ImportError(f"{name} is not needed to look at saved results")

sys.meta_path.insert(0, Refusing())
from headscope.cli.main import main
from headscope.studies.registry import REGISTRY

failed = {}
for command in json.loads(sys.argv[1]):
    sys.argv = ["headscope", *command]
    step[:] = command
    try:
        main()
    except SystemExit as end:
        if end.code:
            failed[" ".join(command)] = end.code
    except Exception as error:
        failed[" ".join(command)] = repr(error)
for study in REGISTRY.values():
    for name in ("spec", "findings", "figures"):
        step[:] = ["import", f"{type(study).__module__}.{name}"]
        try:
            import_module(step[1])
        except ImportError as error:
            failed[" ".join(step)] = repr(error)
print("FOUND", json.dumps([asked, failed]))
"""


def commands(folder: Path, place: Path) -> list[list[str]]:
    """All commands that view saved results."""
    results = Results.open(folder)
    figures = [figure.name for figure in REGISTRY[results.study].figures if figure.table in results] if results.study else ["clark2"]
    return [
        ["show", str(folder)],
        ["show", str(folder), next(iter(results))],
        *(["plot", str(folder), figure, "-o", str(place / f"{figure}.svg")] for figure in figures),
        ["compare", str(folder), str(folder)],
    ]


def test_saved_results_are_viewed_without_torch(small: SmallStudies, tmp_path: Path) -> None:
    """Every figure is drawn, and the settings, findings and figures of every study are imported, without torch."""
    folders = [small.run(), *(small.folder(study) for study in REGISTRY)]
    steps = [command for folder in folders for command in commands(folder, tmp_path)]
    steps += [["report", *map(str, folders), "-o", str(tmp_path / "all.html")]]
    steps += [["compare", str(folders[0]), str(folders[0]), "-o", str(tmp_path / "compared.html")]]
    done = subprocess.run([sys.executable, "-c", _CODE, json.dumps(steps)], capture_output=True, text=True, check=True)
    asked, failed = json.loads(done.stdout.rpartition("FOUND ")[2])
    chains = [f"{chain}\n  asked for {len(steps)} times, as in: {steps[0]}" for chain, steps in asked.items()]
    assert not chains, "\n".join(["modules that are slow to import are imported:", *chains])
    assert not failed, f"{failed}\n{done.stderr[-2000:]}"
    assert "Warning:" not in done.stderr, done.stderr[-2000:]
    drawn = [Path(command[-1]) for command in steps if command[0] == "plot"]
    assert len(drawn) > len(REGISTRY)
    assert [path.name for path in drawn if path.read_text().count("<svg") != 1] == []
