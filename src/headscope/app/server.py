"""Serving the app on a port of this machine."""

from __future__ import annotations

import logging
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from headscope.core.wording import number_of
from headscope.errors import RunError


def need_packages() -> None:
    """Raise an error that says how to install the packages for serving, if one is missing."""
    lacking = [package for package in ("fastapi", "uvicorn") if find_spec(package) is None]
    if lacking:
        raise RunError(f"serving needs {' and '.join(lacking)}, not installed here", "pip install 'headscope[serve]'")


def serve(
    paths: Sequence[Path],
    named: Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int = 8765,
    max_tokens: int = 512,
    open_browser: bool = False,
    notify: Callable[[str], None] = print,
) -> None:
    """Serve runs and models until interrupted. `notify` receives the address and warnings."""
    need_packages()
    import uvicorn

    from headscope.app.create import create_app
    from headscope.app.guard import is_loopback
    from headscope.app.limits import Limits
    from headscope.app.models import find_models
    from headscope.app.protocol import settings
    from headscope.app.served_runs import find_runs

    runs = find_runs(paths, notify)
    bound = bind(host, port)
    with bound:
        limits = Limits(max_tokens=max_tokens)
        app = create_app(runs, find_models(named, runs), limits, host)
        taken = bound.getsockname()[1]
        address = f"http://{f'[{host}]' if ':' in host else host}:{taken}/"
        if not is_loopback(host):
            notify(f"warning: anyone who can reach {host} can read these runs and use the models; there is no password")
        notify(f"headscope serves {number_of(len(runs), 'run')} at {address} (stop with Ctrl+C)")
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        config = uvicorn.Config(app, log_level="error", **settings(limits))
        # Requests that are dropped because the server is stopped are not errors.
        logging.getLogger("uvicorn.error").addFilter(lambda record: not str(record.msg).startswith("Cancel %s running task"))
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[bound])


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise RunError(f"{host} is not an address of this machine ({error.strerror})", "Use 127.0.0.1") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise RunError(
            f"port {port} of {host} cannot be used ({error.strerror})", "Choose another with --port; 0 is any free one"
        ) from None
    return bound
