"""Files that are cut short, emptied, or in which a bit is flipped: a right result or a refusal, never a wrong
number.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trials import Tally, contents, different

import headscope as hs
from headscope.errors import HeadscopeError
from headscope.results.results import Results


def flipped(path: Path, rng: random.Random) -> str:
    """One bit of a file, anywhere."""
    data = bytearray(path.read_bytes())
    place = rng.randrange(len(data))
    data[place] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return f"bit flipped at {place} of {len(data)}"


def cut(path: Path, rng: random.Random) -> str:
    """A file without its end."""
    size = path.stat().st_size
    kept = rng.randrange(size)
    os.truncate(path, kept)
    return f"cut to {kept} of {size}"


def emptied(path: Path, rng: random.Random) -> str:
    """A file with nothing in it."""
    os.truncate(path, 0)
    return "emptied"


HARMS: tuple[Callable[[Path, random.Random], str], ...] = (flipped, cut, emptied)


def read_whole(folder: Path) -> dict[str, Any]:
    """Every number that later commands take from a folder."""
    results = Results.open(folder)
    found: dict[str, Any] = {name: results[name].to_text("csv") for name in results}
    found |= {name: {key: array.tobytes() for key, array in results.state(name).arrays.items()} for name in results.measures}
    found["signature"], found["counts"] = results.signature, dict(results.manifest["counts"])
    gallery = results.gallery
    found["gallery"] = None if gallery is None else gallery.encode()
    return found


def of_finished(what: str, whole: Path, names: list[str], n: int, seed: int, place: Path) -> Tally:
    """Damage files of a finished run; whatever can be read of it afterwards must be what it was."""
    tally = Tally(what)
    expected = read_whole(whole)
    rng = random.Random(seed)
    for number in range(n):
        folder = Path(shutil.copytree(whole, place / f"{number}"))
        name = names[number % len(names)]
        harm = HARMS[0] if number >= 2 * len(names) else HARMS[1 + number // len(names)]
        about = f"{name}: {harm(folder / name, rng)}"
        try:
            found = read_whole(folder)
        except HeadscopeError as error:
            says = any(word in str(error) for word in ("--overwrite", "--resume", "run again"))
            tally.add("refused, with the remedy" if says else "refused without a remedy", says, f"{about}: {error}")
        except Exception as error:  # whatever else is raised is a fault
            tally.add("an error that is none of headscope's", False, f"{about}: {error!r}")
        else:
            same = found == expected
            tally.add("harmless: all numbers as they were" if same else "a wrong number", same, about)
        shutil.rmtree(folder)
    return tally


def of_parts(what: str, model: Any, begun: Path, whole: Path, settings: dict[str, Any], n: int, seed: int, place: Path) -> Tally:
    """Damage the parts, or run.json, of a run that was stopped, and go on with it."""
    tally = Tally(what)
    expected = contents(whole)
    rng = random.Random(seed)
    files = [str(path.relative_to(begun)) for path in sorted(begun.glob("partial/*.safetensors"))] + ["run.json"]
    for number in range(n):
        folder = Path(shutil.copytree(begun, place / f"{number}"))
        name = files[number % len(files)]
        harm = HARMS[0] if number >= 2 * len(files) else HARMS[1 + number // len(files)]
        about = f"{name}: {harm(folder / name, rng)}"
        try:
            hs.run(model, "sampler", out=folder, resume=True, **settings)
        except HeadscopeError as error:
            says = any(word in str(error) for word in ("--overwrite", "--resume", "run again"))
            tally.add("refused, with the remedy" if says else "refused without a remedy", says, f"{about}: {error}")
            for path in _named(folder, str(error)):  # do what it says
                path.unlink()
            hs.run(model, "sampler", out=folder, resume=name != "run.json", overwrite=name == "run.json", **settings)
        except Exception as error:
            tally.add("an error that is none of headscope's", False, f"{about}: {error!r}")
            continue
        else:
            tally.add("gone on with")
        if differs := different(expected, contents(folder)):
            tally.add("a wrong number", False, f"{about}: {differs}")
        shutil.rmtree(folder)
    return tally


def _named(folder: Path, message: str) -> Iterator[Path]:
    """The parts that a message tells to remove."""
    yield from (path for path in folder.glob("partial/*") if str(path) in message and "Remove that file" in message)
