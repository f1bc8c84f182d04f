"""The limits of a server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds that keep one visitor from using up the machine."""

    max_tokens: int = 512  # of a text; the rest is cut off, and a note says so
    characters: int = 200_000  # of a text; more is refused
    body_bytes: int = 4_000_000  # of a request
    body_seconds: float = 20.0  # for the whole body of a request to arrive
    drain_bytes: int = 64_000_000  # of a refused body, read and discarded so that its sender sees the answer
    drain_seconds: float = 2.0  # for reading the rest of a refused body
    bodies_bytes: int = 64_000_000  # of all requests that are arriving
    head_seconds: float = 20.0  # for the first line and the headers of a request to arrive
    answer_seconds: float = 60.0  # for a client to receive a part of an answer
    connections: int = 512  # open at a time; fewer where the system allows fewer files
    generate_tokens: int = 64  # that a decoder generates after a text, at most
    texts: int = 256  # kept at a time
    map_bytes: int = 256_000_000  # of maps kept at a time; others are computed again on request
    influence_tokens: int = 64  # of a text whose G and G* are computed; longer texts would take too long
    waiting: int = 64  # requests that wait for one model, or for pages to be made
    pages: int = 8  # run pages kept ready, and as many comparisons
    comparing: int = 8  # different comparisons that wait to be made, so that pages of runs are not delayed
