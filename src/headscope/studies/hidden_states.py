"""Hidden states of many texts, computed once and kept on disk, so that probes can read them repeatedly.

A cache is a file of one block per text, [layer, token, d], in the order of the texts, named by a hash of everything
that it depends on. Layers are numbered as in models/hidden.py: 0 is the embeddings. The file is written shard by shard
and may be interrupted at any moment:

    NAME.states   the shards, one after the other
    NAME.sums     one line per shard: its number and its checksum

A shard counts as written if its line exists and its bytes have the checksum. So nothing half-written or damaged is
read.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from headscope.encoding.batches import grouped
from headscope.encoding.texts import Encoded
from headscope.engine.shards import Progress
from headscope.errors import RunError
from headscope.models.hidden import hidden, hidden_shape
from headscope.models.model import Model
from headscope.results.signature import versions
from headscope.studies.spec import DType

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

PIECE = 16 * 2**20  # bytes read at once
Level = Literal["token", "word"]
FORMAT = 1
SHARD = 64 * 2**20  # bytes that are computed before they are written


class Shards:
    """The shards of one file; shard k is its bytes [bounds[k], bounds[k + 1])."""

    def __init__(self, folder: Path, name: str, bounds: Sequence[int]) -> None:
        self.data, self._sums, self._lock = (folder / f"{name}.{ending}" for ending in ("states", "sums", "lock"))
        self._bounds = bounds

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A lock while shards are written: another process that needs the same shards waits, and then finds them."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def missing(self) -> list[int]:
        """The shards without a valid checksum; an error if the disk has no room for them."""
        sums: dict[int, int] = {}
        if self._sums.exists():
            for line in self._sums.read_text(encoding="ascii", errors="replace").splitlines():
                number, _, checksum = line.partition(" ")
                if number.isdecimal() and checksum.isdecimal():
                    sums[int(number)] = int(checksum)
        shards = list(range(len(self._bounds) - 1))
        if self.data.exists():
            with self.data.open("rb") as file:
                shards = [number for number in shards if sums.get(number, -1) != self._checksum(file.fileno(), number)]
        self._make_room(sum(self._bounds[number + 1] - self._bounds[number] for number in shards))
        return shards

    def write(self, number: int, data: bytes) -> None:
        """Write a shard in its place, and then its checksum."""
        with self.data.open("r+b" if self.data.exists() else "w+b") as file:
            file.seek(self._bounds[number])
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with self._sums.open("ab") as file:
            file.write(f"\n{number} {zlib.crc32(data)}\n".encode("ascii"))  # on a new line, because the line before may be cut off

    def _checksum(self, file: int, number: int) -> int | None:
        """The checksum of a shard on disk; None if the shard is cut off."""
        start, stop = self._bounds[number], self._bounds[number + 1]
        checksum = 0
        while start < stop:
            data = os.pread(file, min(stop - start, PIECE), start)
            if not data:
                return None
            checksum = zlib.crc32(data, checksum)
            start += len(data)
        return checksum

    def _make_room(self, needed: int) -> None:
        free = shutil.disk_usage(self.data.parent).free
        if needed > free:
            raise RunError(
                f"hidden states take {readable(needed)}, and {self.data.parent} has {readable(free)} left",
                "Free some space, name another folder for them, or choose fewer layers or texts",
            )


def readable(size: float) -> str:
    """A number of bytes in MiB or GiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**29 else f"{size / 2**20:.1f} MiB"


@dataclass(frozen=True)
class HiddenStates:
    """Hidden states of texts in the layers `layers` (0: embeddings), vectors of `size` numbers, mapped from disk."""

    layers: tuple[int, ...]
    size: int
    lengths: tuple[int, ...]  # tokens or words of each text
    values: np.ndarray  # all blocks, flat

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, number: int) -> Float[np.ndarray, "layer token d"]:
        """The states of one text: a view of the file."""
        start, stop = self.places[number], self.places[number + 1]
        return self.values[start:stop].reshape(len(self.layers), self.lengths[number], self.size)

    def some(self, numbers: Sequence[int]) -> HiddenStates:
        """The states of some of the texts, in memory."""
        values = np.concatenate([self[number].reshape(-1) for number in numbers])
        return HiddenStates(self.layers, self.size, tuple(self.lengths[number] for number in numbers), values)

    def padded(self, numbers: Sequence[int]) -> tuple[Float[torch.Tensor, "layer text token d"], Bool[torch.Tensor, "text token"]]:
        """The states of some texts as float32, padded with 0 on the right, and a mask of the text."""
        lengths = torch.tensor([self.lengths[number] for number in numbers])
        width = int(lengths.max())
        batch = torch.zeros(len(self.layers), len(numbers), width, self.size)
        for row, number in enumerate(numbers):
            batch[:, row, : self.lengths[number]] = torch.from_numpy(np.array(self[number]))
        return batch, torch.arange(width) < lengths[:, None]

    @cached_property
    def places(self) -> list[int]:
        """The start of each text's block, and the end of the last one."""
        return [0, *np.cumsum(np.array(self.lengths, dtype=np.int64) * len(self.layers) * self.size).tolist()]


def hidden_states(
    model: Model,
    texts: Sequence[Encoded],
    folder: Path | None,
    *,
    layers: Sequence[int] | None = None,
    level: Level = "token",
    dtype: DType = "float16",
    limit_bytes: int = 8 * 2**30,
    batch_tokens: int = 4096,
    progress: Progress | None = None,
) -> HiddenStates:
    """The hidden states of `texts` in some layers or all, from the cache in `folder`, or computed now and kept there.

    At level `token` special tokens are included. At level `word` a word is the mean of its pieces, and special tokens
    are removed. Without a folder, states are kept in a temporary one while they are used.
    """
    count, size = hidden_shape(model)
    chosen = tuple(range(count)) if layers is None else tuple(layers)
    if wrong := [layer for layer in chosen if not 0 <= layer < count]:
        raise RunError(f"{model.name} has no layer {wrong[0]}", f"Its hidden states are those of layers 0 (embeddings) to {count - 1}")
    if not texts or not chosen:
        raise RunError("no hidden states were requested", "Give at least one text and one layer")
    lengths = tuple(len(text.words) if level == "word" else len(text) for text in texts)
    empty = HiddenStates(chosen, size, lengths, np.zeros(0, dtype))
    item = empty.values.dtype.itemsize
    if (needed := empty.places[-1] * item) > limit_bytes:
        asked = f"{sum(lengths):,} {level}s in {len(chosen)} layer{'s' * (len(chosen) != 1)}"
        raise RunError(
            f"hidden states of {asked} take {readable(needed)} as {dtype}, more than the limit of {readable(limit_bytes)}",
            "Choose fewer layers or texts, float16 instead of float32, or raise the limit",
        )
    place = Path(tempfile.mkdtemp(prefix="headscope-")) if folder is None else folder
    try:
        texts_of = list(_shards(empty.places, item))
        bounds = [0, *(empty.places[shard.stop] * item for shard in texts_of)]
        shards = Shards(place, _key(model, texts, chosen, level, dtype), bounds)
        with shards.locked():
            missing = shards.missing()
            done = len(texts) - sum(len(texts_of[number]) for number in missing)
            for number in missing:
                shards.write(number, _work_out(model, texts, texts_of[number], empty, level, batch_tokens))
                done += len(texts_of[number])
                if progress is not None:
                    progress(done / len(texts), done, sum(lengths[: texts_of[number].stop]))
            return replace(empty, values=np.memmap(shards.data, dtype, "r", shape=(empty.places[-1],)))
    except OSError as error:
        remedy = "Name another folder for the hidden states, or free some space"
        raise RunError(f"hidden states cannot be written to {place} ({error.strerror})", remedy) from error
    finally:
        if folder is None:  # a mapped file stays until it is unmapped
            shutil.rmtree(place, ignore_errors=True)


def _work_out(model: Model, texts: Sequence[Encoded], shard: range, states: HiddenStates, level: Level, batch_tokens: int) -> bytes:
    """The blocks of a shard's texts, in order; the model reads texts of similar length together."""
    blocks: dict[int, bytes] = {}
    for batch in _batches(texts, shard, batch_tokens):
        states_by_layer = hidden(model, [texts[number] for number in batch])
        stacked = torch.stack([states_by_layer[layer].float() for layer in states.layers])
        for row, number in enumerate(batch):
            states_of_text = stacked[:, row, : len(texts[number])]
            block = (_of_words(states_of_text, texts[number]) if level == "word" else states_of_text).cpu().numpy()
            blocks[number] = _narrowed(block, states.values.dtype, model, texts[number]).tobytes()
    return b"".join(blocks[number] for number in shard)


def _narrowed(
    block: Float[np.ndarray, "layer token d"], dtype: np.dtype, model: Model, text: Encoded
) -> Float[np.ndarray, "layer token d"]:
    """A block in the type in which it is kept; an error if a value is too large for the type."""
    with np.errstate(over="ignore"):
        narrow = block.astype(dtype)
    if np.isfinite(narrow).all():
        return narrow
    if np.isfinite(block).all():
        raise RunError(
            f"a hidden state of {model.name} is {np.abs(block).max():.3g}, and the largest number in float16 is 65504",
            "Keep the states as float32",
        )
    raise RunError(f"{model.name} gives hidden states that are not numbers for {text.id}", "Load its weights as float32")


def _of_words(states: Float[torch.Tensor, "layer token d"], text: Encoded) -> Float[torch.Tensor, "layer word d"]:
    """The states of words, means of the states of their pieces."""
    of = torch.tensor(text.word_of, device=states.device)
    share = torch.nn.functional.one_hot(of + 1, len(text.words) + 1)[:, 1:].float()
    return torch.einsum("ltd,tw->lwd", states, share / share.sum(0))


def _shards(places: Sequence[int], item: int) -> Iterator[range]:
    """Consecutive texts of about as many bytes; the bounds of shards depend only on the texts."""
    start = 0
    for number in range(1, len(places)):
        if (places[number] - places[start]) * item >= SHARD or number == len(places) - 1:
            yield range(start, number)
            start = number


def _batches(texts: Sequence[Encoded], shard: range, tokens: int) -> Iterator[list[int]]:
    """The texts of a shard sorted by length, so that a padded batch holds at most `tokens` tokens (or one text)."""
    ordered = sorted(shard, key=lambda number: len(texts[number]))
    return grouped(ordered, lambda batch, number: (len(batch) + 1) * len(texts[number]) > tokens)


def _key(model: Model, texts: Sequence[Encoded], layers: tuple[int, ...], level: Level, dtype: DType) -> str:
    """A hash of everything that the states depend on."""
    parts_of_key = [FORMAT, SHARD, model.fingerprint, model.dtype, model.device.type, versions()["transformers"], layers, level, dtype]
    digest = hashlib.sha256(json.dumps(parts_of_key).encode())
    for text in texts:
        parts = [text.ids, text.segments, *([np.array(text.word_of, dtype=np.int64)] if level == "word" else [])]
        digest.update(len(text).to_bytes(8, "little") + b"".join(part.astype("<i8").tobytes() for part in parts))
    return digest.hexdigest()[:24]
