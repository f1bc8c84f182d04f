"""The pages (runs, one run, one head, two runs, a box for a sentence, the API), and the scripts that they load."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from starlette.responses import Response

from headscope.app.api import Has
from headscope.app.errors import Refusal, missing
from headscope.app.served_runs import PageContent
from headscope.app.templates import render
from headscope.views.page import bundle, encode

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/")
async def index(has: Has) -> str:
    """The runs, and the box for a text."""
    return render("index", title="headscope", runs=has.runs.describe(), data=_data(live=_live(has)))


@router.get("/live")
async def live(has: Has) -> str:
    """The box for a text, alone."""
    return render("live", title="headscope: a text", data=_data(live=_live(has)))


@router.get("/runs/{name}")
async def run(has: Has, name: str) -> str:
    """A run's page: what `headscope report` writes, with addresses."""
    return await _run(has, name, None)


@router.get("/runs/{name}/heads/{head:path}")
async def head(has: Has, name: str, head: str) -> str:
    """A run's page with one head open."""
    return await _run(has, name, str(has.runs.head(name, head)))


@router.get("/compare")
async def compare(has: Has, a: str = "", b: str = "") -> str:
    """Two runs, number by number."""
    if not a or not b:
        raise Refusal(422, "a comparison needs two runs", "Choose them on the front page")
    inside = await has.runs.compared(a, b)
    return render("compare", a=a, b=b, data=Markup(inside.data), **_parts(inside))


@router.get("/docs")
async def docs(request: Request) -> str:
    """The API, from its own description."""
    schema = request.app.openapi()
    return render("docs", title="headscope: the API", schema=schema, endpoints=_endpoints(schema))


async def _run(has: Has, name: str, head: str | None) -> str:
    inside = await has.runs.inside(name)
    served = f"/runs/{quote(name, safe='')}"
    # The run is JSON already, and long: it is put in as it is.
    data = f'{{"run":{inside.data},"head":{encode(head)},"served":{encode(served)}}}'
    return render("run", name=name, data=Markup(data), **_parts(inside))


def _parts(inside: PageContent) -> dict[str, str]:
    return {"title": inside.title, "style": Markup(inside.style), "body": Markup(inside.body)}


def _live(has: Has) -> dict[str, Any]:
    return {"models": has.models.names, "characters": has.limits.characters}


def _data(**values: Any) -> Markup:
    return Markup(encode(values))


def _endpoints(schema: dict[str, Any]) -> list[dict[str, Any]]:
    endpoints: list[dict[str, Any]] = []
    for path, methods in schema["paths"].items():
        for method, endpoint in methods.items():
            answers = [
                {"status": status, "types": ", ".join(answer.get("content") or ["application/json"])}
                for status, answer in endpoint["responses"].items()
            ]
            endpoints.append(
                {
                    **{"method": method.upper(), "path": path, "about": endpoint.get("description", "")},
                    **{"parameters": endpoint.get("parameters", []), "answers": answers, "body": _body(schema, endpoint)},
                }
            )
    return endpoints


def _body(schema: dict[str, Any], endpoint: dict[str, Any]) -> dict[str, Any] | None:
    if "requestBody" not in endpoint:
        return None
    name: str = endpoint["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    description: dict[str, Any] = schema["components"]["schemas"][name.rsplit("/", 1)[-1]]
    return description


def views() -> bytes:
    """The bundle of the views, as JavaScript."""
    return bundle().encode()


def start() -> bytes:
    """A module that starts the views on a page: no script is inline, so the page can forbid inline scripts."""
    return f'import {{ start }} from "./headscope.js?v={_hash(views())}";\nstart();\n'.encode()


def address() -> str:
    """The address from which pages load that module."""
    return f"/static/start.js?v={_hash(start())}"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@router.get("/static/{name}")
async def static(request: Request, name: str) -> Response:
    """One of the scripts. An address with the content's hash may be cached forever; any other is requested again."""
    made = {"headscope.js": views, "start.js": start}.get(name)
    if made is None:
        raise missing(f"there is no script {name!r}")
    content = made()
    tag = f'"{_hash(content)}"'
    named = request.query_params.get("v") == tag.strip('"')
    headers = {"ETag": tag, "Cache-Control": "public, max-age=31536000, immutable" if named else "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type="text/javascript")
