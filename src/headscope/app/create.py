"""The app: pages and API over runs and models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from headscope.app import api, errors, pages
from headscope.app.api import AppState
from headscope.app.guard import Guard
from headscope.app.limits import Limits
from headscope.app.models import ServedModels
from headscope.app.served_runs import ServedRuns
from headscope.app.texts import SentTexts
from headscope.results.results import Results
from headscope.results.signature import versions

if TYPE_CHECKING:
    from headscope.models.model import Model


def create_app(
    runs: Mapping[str, Results], models: Mapping[str, Model | str], limits: Limits | None = None, host: str = "127.0.0.1"
) -> FastAPI:
    """An ASGI app for `runs` and `models` by name; it answers only to this machine's loopback names and `host`."""
    limits = limits or Limits()
    places = ServedModels(models, limits)
    state = AppState(ServedRuns(runs, limits), places, SentTexts(places, limits), limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state.models.warm()
        yield
        state.close()

    app = FastAPI(
        title="headscope",
        description="What the attention heads of a Transformer look at: runs, and texts typed in.",
        version=versions()["headscope"],
        docs_url=None,  # FastAPI's own page loads scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.headscope = state
    for part in (api, pages):
        app.include_router(part.router)
    errors.install(app)
    app.add_middleware(Guard, limits=limits, host=host)
    return app
