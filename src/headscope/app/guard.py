"""The checks that every request passes, and the headers that every answer gets."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
from collections.abc import Collection
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headscope.app.errors import Refusal, answer
from headscope.app.limits import Limits

log = logging.getLogger("headscope.app")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::[0-9]{1,5})?", re.ASCII)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """Checks the host and the origin of a request, bounds its body, and answers unexpected errors with a plain 500."""

    def __init__(self, app: ASGIApp, limits: Limits, host: str) -> None:
        self.app = app
        self.limits = limits
        self.hosts = allowed_hosts(host)
        self.any_address = is_wildcard(host)
        self.arriving = 0  # bytes of bodies that have not arrived completely

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = ended = False

        async def heard() -> Message:
            nonlocal ended
            message = await receive()
            ended = not message.get("more_body", False)
            return message

        async def protected(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            self.check(Headers(scope=scope), scope["method"])
            body = await self.body(Headers(scope=scope), heard)
            # HEAD is answered as GET; the server leaves the body out.
            inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await self.app(inner, _replay(body, receive), protected)
        except Refusal as error:
            # The rest of the body is not used, so the connection cannot serve another request.
            headers = {"Connection": "close", **({"Retry-After": "1"} if error.status == 429 else {})}
            response = answer(scope["path"], error.status, error.problem, error.remedy, headers)

            async def lingering(message: Message) -> None:
                if message["type"] == "http.response.body" and not ended:
                    await protected({**message, "more_body": True})
                    await self.drain(heard)
                    message = {"type": "http.response.body"}
                await protected(message)

            await response(scope, receive, lingering)
        except asyncio.CancelledError:
            # The server stops. Nobody waits for this task, and a traceback would not help.
            if not started:
                problem = "the server was stopped before it could answer"
                await answer(scope["path"], 503, problem, headers={"Connection": "close"})(scope, receive, protected)
        except Exception:
            log.exception("%s failed", scope["method"])
            if started:
                raise
            remedy = "The request is not the cause; see the terminal in which headscope runs"
            await answer(scope["path"], 500, "an internal error of headscope occurred", remedy)(scope, receive, protected)

    def check(self, headers: Headers, method: str) -> None:
        """Refuse requests for another host, and requests that come from another site, unless a link is followed."""
        host = headers.get("host", "")
        if not self.known(host):
            raise Refusal(421, "this server does not serve that host name", "Use the address that headscope serve printed")
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if method in ("GET", "HEAD"):
            if elsewhere and not _followed(headers):
                raise Refusal(403, "another site may only link to this server", "Open the address itself")
            return
        origin = headers.get("origin")
        if elsewhere or (origin is not None and _netloc(origin) != host.lower()):
            raise Refusal(403, "another site may not send texts here", "Send them from a page of this server")

    def known(self, host: str) -> bool:
        """Whether a Host header names this server. A server on all addresses answers to any address, not any name."""
        match = _HOST.fullmatch(host)
        name = (match[1] or match[2]).lower() if match else ""
        return name in self.hosts or (self.any_address and _is_address(name))

    async def body(self, headers: Headers, receive: Receive) -> bytes:
        """The whole body, if it is small enough and arrives in time."""
        length = headers.get("content-length", "")
        if length in ("", "0") and "transfer-encoding" not in headers:
            return b""
        large = Refusal(413, f"the request is larger than {self.limits.body_bytes:,} bytes", "Send a shorter text")
        if length.isdecimal() and (len(length) > 15 or int(length) > self.limits.body_bytes):
            raise large
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the request ended early", "Send it again")
                    piece = message.get("body", b"")
                    body += piece
                    self.arriving += len(piece)
                    more = message.get("more_body", False)
                    if len(body) > self.limits.body_bytes:
                        raise large
                    if self.arriving > self.limits.bodies_bytes:
                        raise Refusal(429, "too much data is being sent at the same time", "Try again in a moment")
        except TimeoutError:
            raise Refusal(408, f"the request took more than {self.limits.body_seconds:g} seconds to arrive", "Send it again") from None
        finally:
            self.arriving -= len(body)
        return bytes(body)

    async def drain(self, receive: Receive) -> None:
        """Discard the rest of a body, for a while. A client that sends all of it before it reads would not see an
        answer after which the connection is closed at once: the system resets a connection that is closed with bytes
        unread.
        """
        left = self.limits.drain_bytes
        with suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(self.limits.drain_seconds):
                while left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return


def allowed_hosts(host: str) -> Collection[str]:
    """The names a server on `host` answers to."""
    names = {socket.gethostname().lower(), socket.getfqdn().lower()} if is_wildcard(host) else {host.lower()}
    return {*LOOPBACK, *names}


def is_wildcard(host: str) -> bool:
    """Whether a host stands for all addresses of the machine."""
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _followed(headers: Headers) -> bool:
    """Whether a person followed a link: the answer fills a tab, not a picture or a frame of another page."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest", "document") == "document"


def _netloc(origin: str) -> str:
    """Host and port of an Origin header; empty if it is not an address."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body that was read, and then the further messages of the connection."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
