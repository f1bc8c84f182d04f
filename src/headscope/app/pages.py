"""The pages: the runs, one run, one head of it, two runs beside each other, a box for a sentence, the API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from headscope.app.api import Has
from headscope.app.errors import Refusal
from headscope.app.served_runs import PageContent
from headscope.app.templates import render
from headscope.views.page import encode

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/")
async def index(has: Has) -> str:
    """The runs, and the box."""
    return render("index", title="headscope", runs=has.runs.describe(), data=_data(live=_live(has)))


@router.get("/live")
async def live(has: Has) -> str:
    """The box alone."""
    return render("live", title="headscope: a text", data=_data(live=_live(has)))


@router.get("/runs/{name}")
async def run(has: Has, name: str) -> str:
    """A run's page: what `headscope report` writes, with addresses."""
    return await _run(has, name, None)


@router.get("/runs/{name}/heads/{head:path}")
async def head(has: Has, name: str, head: str) -> str:
    """A run's page with one head open."""
    return await _run(has, name, has.runs.head(name, head))


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
    """Each endpoint with what it takes and answers."""
    found: list[dict[str, Any]] = []
    for path, methods in schema["paths"].items():
        for method, one in methods.items():
            answers = [
                {"status": status, "types": ", ".join(answer.get("content") or ["application/json"])}
                for status, answer in one["responses"].items()
            ]
            found.append(
                {
                    **{"method": method.upper(), "path": path, "about": one.get("description", "")},
                    **{"parameters": one.get("parameters", []), "answers": answers, "body": _body(schema, one)},
                }
            )
    return found


def _body(schema: dict[str, Any], endpoint: dict[str, Any]) -> dict[str, Any] | None:
    """The description of the JSON that an endpoint takes."""
    if "requestBody" not in endpoint:
        return None
    name: str = endpoint["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    found: dict[str, Any] = schema["components"]["schemas"][name.rsplit("/", 1)[-1]]
    return found
