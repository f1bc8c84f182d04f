"""Errors as a visitor gets them: JSON under /api, a page elsewhere, never a traceback."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from headscope.app.templates import render
from headscope.errors import HeadscopeError, StaleError

WHERE = "The front page lists runs and models; /docs lists the API"


class Refusal(HeadscopeError):
    """An answer other than 200, with its status."""

    def __init__(self, status: int, problem: str, remedy: str = "") -> None:
        self.status = status
        super().__init__(problem, remedy)


def missing(problem: str, remedy: str = WHERE) -> Refusal:
    """The refusal of a request for something that does not exist."""
    return Refusal(404, problem, remedy)


def answer(path: str, status: int, problem: str, remedy: str = "", headers: dict[str, str] | None = None) -> Response:
    """The answer with a refusal: JSON under /api, a page elsewhere."""
    if path.startswith("/api/"):
        return Response(json.dumps({"error": problem, "remedy": remedy}), status, headers, "application/json")
    name = HTTPStatus(status).phrase
    return HTMLResponse(render("problem", title=name, problem=problem, remedy=remedy, status=status), status, headers)


def install(app: FastAPI) -> None:
    """Make the app answer errors in these forms."""

    @app.exception_handler(HeadscopeError)
    async def refused(request: Request, error: HeadscopeError) -> Response:
        status = 409 if isinstance(error, StaleError) else getattr(error, "status", 422)
        public = request.app.state.headscope.public
        headers = {"Retry-After": "1"} if status == 429 else None
        return answer(request.url.path, status, public(error.problem), public(error.remedy), headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        # What was sent is not repeated: it may be long, or no valid text.
        return answer(request.url.path, 422, "; ".join(_line(fault) for fault in error.errors()[:3]), "/docs describes what is expected")

    @app.exception_handler(HTTPException)
    async def failed(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # FastAPI's status for a body that is not text
            return answer(request.url.path, 422, "the request is not JSON in UTF-8", "/docs describes what is expected")
        problem = "there is nothing at this address" if error.status_code == 404 else str(error.detail)
        return answer(request.url.path, error.status_code, problem, WHERE, dict(error.headers or {}))


def _line(fault: Any) -> str:
    if fault.get("type") == "json_invalid":
        return "the request is not valid JSON"
    if tuple(fault.get("loc", ())) == ("body",):
        return "a JSON object is expected, sent as application/json"
    place = ".".join(str(part) for part in fault.get("loc", ()) if part not in ("body", "query", "path"))
    text = f"{place}: {fault.get('msg', 'invalid')}" if place else str(fault.get("msg", "invalid"))
    return text.encode("utf-8", "replace").decode()[:300]
