"""The scripts that pages load: the bundle of views, and the line that starts it. Their addresses change with their
content.
"""

from __future__ import annotations

import hashlib

from fastapi import APIRouter, Request
from starlette.responses import Response

from headscope.app.errors import missing
from headscope.views.page import bundle

router = APIRouter(include_in_schema=False)


def views() -> bytes:
    """The bundle."""
    return bundle().encode()


def start() -> bytes:
    """A module that starts the views on a page: nothing runs inline, so the page may forbid it."""
    return f'import {{ start }} from "./headscope.js?v={_hash(views())}";\nstart();\n'.encode()


def address() -> str:
    """Where pages load that module from."""
    return f"/static/start.js?v={_hash(start())}"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@router.get("/static/{name}")
async def static(request: Request, name: str) -> Response:
    """One of the scripts. An address that names the content's hash may be kept for ever; any other is asked for
    again.
    """
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
