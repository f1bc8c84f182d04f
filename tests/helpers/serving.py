"""A real server for tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headscope.app.limits import Limits
from headscope.app.server import bind


@contextmanager
def listening(app: Any, limits: Limits) -> Iterator[int]:
    """Run a server of the app in a thread, and yield its port."""
    import uvicorn

    from headscope.app.protocol import settings

    bound = bind("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", **settings(limits)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield bound.getsockname()[1]
    server.should_exit = True
    thread.join()
    bound.close()
