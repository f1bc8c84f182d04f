"""Files that are cut short, emptied, or have one flipped bit: they give a correct result or an error, never a wrong
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


def flip_bit(path: Path, rng: random.Random) -> str:
    """Flip one random bit of a file, and describe the change."""
    data = bytearray(path.read_bytes())
    place = rng.randrange(len(data))
    data[place] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return f"bit flipped at {place} of {len(data)}"


def cut_short(path: Path, rng: random.Random) -> str:
    """Cut a file short at a random place, and describe the change."""
    size = path.stat().st_size
    kept = rng.randrange(size)
    os.truncate(path, kept)
    return f"cut to {kept} of {size}"


def empty_file(path: Path, rng: random.Random) -> str:
    """Remove the content of a file, and describe the change."""
    os.truncate(path, 0)
    return "emptied"


DAMAGES: tuple[Callable[[Path, random.Random], str], ...] = (flip_bit, cut_short, empty_file)


def read_whole(folder: Path) -> dict[str, Any]:
    """Everything that later commands read from a run folder."""
    results = Results.open(folder)
    found: dict[str, Any] = {name: results[name].to_text("csv") for name in results}
    found |= {name: {key: array.tobytes() for key, array in results.state(name).arrays.items()} for name in results.measures}
    found["signature"], found["counts"] = results.signature, dict(results.manifest["counts"])
    gallery = results.gallery
    found["gallery"] = None if gallery is None else gallery.encode()
    return found


def of_finished(what: str, whole: Path, names: list[str], n: int, seed: int, place: Path) -> Tally:
    """Damage files of a finished run. The results must then be refused, or read unchanged."""
    tally = Tally(what)
    expected = read_whole(whole)
    rng = random.Random(seed)
    for number in range(n):
        folder = Path(shutil.copytree(whole, place / f"{number}"))
        name = names[number % len(names)]
        damage_file = DAMAGES[0] if number >= 2 * len(names) else DAMAGES[1 + number // len(names)]
        description = f"{name}: {damage_file(folder / name, rng)}"
        try:
            found = read_whole(folder)
        except HeadscopeError as error:
            has_remedy = any(word in str(error) for word in ("--overwrite", "--resume", "run again"))
            tally.add("refused, with the remedy" if has_remedy else "refused without a remedy", has_remedy, f"{description}: {error}")
        except Exception as error:  # any other exception is a fault
            tally.add("an error that is none of headscope's", False, f"{description}: {error!r}")
        else:
            same = found == expected
            tally.add("harmless: all numbers as they were" if same else "a wrong number", same, description)
        shutil.rmtree(folder)
    return tally


def of_parts(what: str, model: Any, stopped_run: Path, whole: Path, settings: dict[str, Any], n: int, seed: int, place: Path) -> Tally:
    """Damage the parts, or run.json, of a stopped run, and resume it."""
    tally = Tally(what)
    expected = contents(whole)
    rng = random.Random(seed)
    files = [str(path.relative_to(stopped_run)) for path in sorted(stopped_run.glob("partial/*.safetensors"))] + ["run.json"]
    for number in range(n):
        folder = Path(shutil.copytree(stopped_run, place / f"{number}"))
        name = files[number % len(files)]
        damage_file = DAMAGES[0] if number >= 2 * len(files) else DAMAGES[1 + number // len(files)]
        description = f"{name}: {damage_file(folder / name, rng)}"
        try:
            hs.run(model, "sampler", out=folder, resume=True, **settings)
        except HeadscopeError as error:
            has_remedy = any(word in str(error) for word in ("--overwrite", "--resume", "run again"))
            tally.add("refused, with the remedy" if has_remedy else "refused without a remedy", has_remedy, f"{description}: {error}")
            for path in _named(folder, str(error)):  # apply the remedy of the message
                path.unlink()
            hs.run(model, "sampler", out=folder, resume=name != "run.json", overwrite=name == "run.json", **settings)
        except Exception as error:
            tally.add("an error that is none of headscope's", False, f"{description}: {error!r}")
            continue
        else:
            tally.add("gone on with")
        if differs := different(expected, contents(folder)):
            tally.add("a wrong number", False, f"{description}: {differs}")
        shutil.rmtree(folder)
    return tally


def _named(folder: Path, message: str) -> Iterator[Path]:
    """The parts that the remedy of an error message names for removal."""
    yield from (path for path in folder.glob("partial/*") if str(path) in message and "Remove that file" in message)
