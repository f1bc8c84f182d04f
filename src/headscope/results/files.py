"""Files that are written completely or not at all, and arrays and records with a checksum in them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from headscope.errors import RunError

SUM = "sha256"
ABOUT = "about"
TEMPORARY = re.compile(r"\..+\.[0-9]+\.tmp")  # names of files that are not completely written
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def checksum(data: bytes) -> str:
    """SHA-256 of the bytes of a file."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: Path, data: bytes, within: Path | None = None, remedy: str = "") -> None:
    """Write a file so that it is complete or does not exist. Folders are created for it, except `within`, which must
    exist; `remedy` is what to do when the disk is full.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if within is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif path.parent != within:
            path.parent.mkdir(exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        action = (remedy or "Free some space") if error.errno in _FULL else "Choose another place with --out"
        raise RunError(f"{path} cannot be written ({error.strerror})", action) from error
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def seal_arrays(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    """Arrays as the bytes of a safetensors file whose metadata hold a checksum of everything in it. Arrays are put
    into row-major order first, since safetensors writes memory as it is.
    """
    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    about = json.dumps({**metadata, SUM: _sum(ordered, metadata)})
    data: bytes = save(ordered, metadata={ABOUT: about})  # one entry, since safetensors writes several in any order
    return data


def open_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and metadata of a file that `seal_arrays` made; a ValueError if they were damaged since."""
    try:
        with safe_open(path, framework="numpy") as file:
            written: dict[str, str] = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError, OverflowError) as error:
        raise ValueError(str(error)) from error
    metadata: dict[str, str] = json.loads(written[ABOUT]) if ABOUT in written else written
    expected = metadata.pop(SUM, None)
    if expected is not None and _sum(arrays, metadata) != expected:
        raise ValueError("its checksum does not match")
    return arrays, metadata


def _sum(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.asarray(array, order="C").reshape(-1).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


def seal_record(record: Mapping[str, Any]) -> bytes:
    """A record as JSON, with its checksum as its last line."""
    plain = {name: value for name, value in record.items() if name != SUM}
    text = json.dumps({**plain, SUM: _record_sum(plain)}, indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace")  # for file names that are not valid text: JSON has escapes


def open_record(data: bytes) -> Any:
    """The record that `seal_record` wrote, without its checksum; a ValueError for anything else. A record without a
    checksum is accepted.
    """
    record = json.loads(data.decode("utf-8"))
    if isinstance(record, dict) and record.get(SUM) is not None:
        expected = record.pop(SUM)
        if _record_sum(record) != expected:
            raise ValueError(f"its checksum does not match: it is damaged, or was edited without removing the line {SUM!r}")
    return record


def _record_sum(record: Mapping[str, Any]) -> str:
    as_read = json.loads(json.dumps(record))  # keys are strings then
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()
