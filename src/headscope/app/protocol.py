"""Limits on connections: how many there are at a time, and how long each may wait."""

from __future__ import annotations

import asyncio
import json
import resource
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from headscope.app.limits import Limits

_CROWDED = json.dumps({"error": "too many connections are open", "remedy": "Try again in a moment"}).encode()


def bounded(limits: Limits) -> type[H11Protocol]:
    """The protocol that a server with these limits speaks."""
    room = max(16, min(limits.connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))

    class Bounded(H11Protocol):
        """HTTP/1.1 with time limits for the head of a request to arrive, and for an answer to be received."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.waiting: dict[str, asyncio.TimerHandle] = {}

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > room:
                head = b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
                transport.write(head + b"Content-Length: %d\r\n\r\n" % len(_CROWDED) + _CROWDED)
                transport.close()
            else:
                self._wait("head", limits.head_seconds)

        def connection_lost(self, exc: Exception | None) -> None:
            for what in ("head", "answer"):
                self._wait(what, None)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            try:
                super().data_received(data)
            except h11.LocalProtocolError:  # invalid data during an answer: no other answer can be sent
                self.transport.abort()
            # During a request the app bounds its body. Between requests the limit applies to a head that has begun.
            if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
                self._wait("head", None)
            elif "head" not in self.waiting:
                self._wait("head", limits.head_seconds)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._wait("answer", limits.answer_seconds)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._wait("answer", None)

        def _unsupported_upgrade_warning(self) -> None:
            """Print nothing: the request is answered as any other."""

        def _wait(self, what: str, seconds: float | None) -> None:
            """Close the connection after this many seconds; None cancels that."""
            if what in self.waiting:
                self.waiting.pop(what).cancel()
            if seconds is not None:
                self.waiting[what] = self.loop.call_later(seconds, self.transport.abort)

    return Bounded


def settings(limits: Limits) -> dict[str, Any]:
    """The settings of uvicorn."""
    return {
        "http": bounded(limits),
        "ws": "none",
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "timeout_keep_alive": 5,
        "timeout_graceful_shutdown": 1,
    }
