"""The HTML around what is shown. Every value is escaped unless it is marked as HTML."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    from headscope.views.page import templates

    environment = templates("headscope.app", "templates")
    environment.filters["address"] = lambda name: quote(name, safe="")
    return environment


def render(template: str, **values: Any) -> str:
    """A page made from a template."""
    from headscope.app.pages import address
    from headscope.core.paths import printable
    from headscope.views.page import base_style

    return printable(_environment().get_template(f"{template}.html.jinja").render(start=address(), base=base_style(), **values))
