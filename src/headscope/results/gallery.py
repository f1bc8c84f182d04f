"""The gallery of a run: example texts with maps, and how close its heads are to each other.

In a run folder it is `gallery.safetensors`: maps as 16-bit numbers, 65535 for a weight of 1, and everything else in the
metadata as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from headscope.core.heads import HeadId
from headscope.errors import RunError

if TYPE_CHECKING:
    from jaxtyping import Float32, Float64, UInt16

    Map = UInt16[np.ndarray, "query key"]

FORMAT = "1"
REMEDY = "Remove that file: the run is complete without it, and --resume creates it again"
NEAREST = 5  # neighbours of a head


@dataclass(frozen=True)
class Example:
    """A text in which a head does what it is best at; `value` and `n` are those of the measure on this text alone."""

    head: HeadId
    measure: str
    quantity: str
    value: float
    n: int
    text: int  # index into the gallery's texts
    map: Map  # of this head, or of a window of its map if the text has one: rows may then sum to less than 1


@dataclass(frozen=True)
class Points:
    """Heads as points in a plane, in the order of the head axis; NaN for kinds of heads that were not compared."""

    x: Float64[np.ndarray, "head"]
    y: Float64[np.ndarray, "head"]
    stress: float
    behaviour: tuple[str, ...]  # "" for none
    rows: int  # rows of attention that the distances are means over
    neighbours: tuple[tuple[tuple[int, float], ...], ...]  # for each head the nearest heads and their distances


@dataclass(frozen=True)
class Gallery:
    """The gallery of a run. `texts` are as gallery.texts.describe_text makes them; each of `stacks` has the number of
    a text and the maps of all heads on it; `distances` are mean Jensen-Shannon divergences in nats, NaN between heads
    that cannot be compared; `points` show these distances in a plane.
    """

    texts: tuple[dict[str, Any], ...]
    stacks: tuple[tuple[int, dict[HeadId, Map]], ...]
    examples: tuple[Example, ...]
    distances: Float32[np.ndarray, "head head"] | None
    points: Points | None

    def encode(self) -> bytes:
        """The gallery as the bytes of a file; equal galleries give equal bytes."""
        arrays = {f"stack/{number}/{head.key}": map for number, (_, maps) in enumerate(self.stacks) for head, map in maps.items()}
        arrays |= {f"example/{number}": example.map for number, example in enumerate(self.examples)}
        about: dict[str, Any] = {
            "format": FORMAT,
            "texts": self.texts,
            "stacks": [{"text": text, "heads": [head.key for head in maps]} for text, maps in self.stacks],
            "examples": [[shown.head.key, shown.measure, shown.quantity, shown.value, shown.n, shown.text] for shown in self.examples],
        }
        if self.distances is not None and self.points is not None:
            arrays |= {"distances": self.distances, "points": np.stack([self.points.x, self.points.y], 1)}
            about["points"] = {"stress": self.points.stress, "behaviour": self.points.behaviour, "rows": self.points.rows}
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        data: bytes = save(contiguous, metadata={"gallery": json.dumps(about, ensure_ascii=False)})
        return data

    @classmethod
    def read(cls, path: Path, one_kind: bool | None = None) -> Gallery:
        """The gallery in a file that `encode` made; `one_kind` tells whether heads are named without their kind."""
        try:
            with safe_open(path, framework="numpy") as file:
                about = json.loads(file.metadata()["gallery"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            if about["format"] != FORMAT:
                raise ValueError(f"format {about['format']}")
            return cls._decode(about, arrays, one_kind)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path} is damaged ({error})", REMEDY) from error

    @classmethod
    def _decode(cls, about: dict[str, Any], arrays: dict[str, Any], one_kind: bool | None) -> Gallery:
        def head_of(key: str) -> HeadId:
            return replace(HeadId.parse(key), bare=one_kind)

        stacks = tuple(
            (stack["text"], {head_of(head): arrays[f"stack/{number}/{head}"] for head in stack["heads"]})
            for number, stack in enumerate(about["stacks"])
        )
        examples = tuple(
            Example(head_of(head), measure, quantity, value, n, text, arrays[f"example/{number}"])
            for number, (head, measure, quantity, value, n, text) in enumerate(about["examples"])
        )
        distances = points = None
        if (picture := about.get("points")) is not None:
            distances, (x, y) = arrays["distances"], arrays["points"].T
            points = Points(x, y, picture["stress"], tuple(picture["behaviour"]), picture["rows"], neighbours(distances))
        return cls(tuple(about["texts"]), stacks, examples, distances, points)


def neighbours(distances: Float32[np.ndarray, "head head"]) -> tuple[tuple[tuple[int, float], ...], ...]:
    """The nearest other heads of each head, with their distances; none for a head that was not compared."""
    others = np.where(np.eye(len(distances), dtype=bool), np.nan, distances)
    nearest: Sequence[Sequence[int]] = np.argsort(others, axis=1, kind="stable")[:, :NEAREST].tolist()  # NaN comes last
    return tuple(
        tuple((head, float(row[head])) for head in heads if not np.isnan(row[head])) for row, heads in zip(others, nearest, strict=True)
    )
