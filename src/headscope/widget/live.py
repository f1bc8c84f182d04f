"""The live widget. It needs anywidget, so this module is imported only on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from headscope.errors import HeadscopeError
from headscope.views.page import bundle


class LiveView(anywidget.AnyWidget):
    """The views' bundle with its data. Maps that the data do not contain are requested one by one and sent as bytes."""

    _esm = bundle()
    data = traitlets.Dict().tag(sync=True)
    fallback = traitlets.Unicode("").tag(sync=True)  # the name of the page that replaces the widget until it is drawn
    head = traitlets.Unicode(None, allow_none=True).tag(sync=True)  # the chosen head of a run

    def __init__(
        self, data: dict[str, Any], bytes_of: Callable[[str], bytes], influence_of: Callable[[str], dict[str, Any]] | None = None
    ) -> None:
        super().__init__(data=data, head=data.get("head"))
        self._bytes_of, self._influence_of = bytes_of, influence_of
        self.on_msg(self._answer)

    def _answer(self, _: object, content: Any, buffers: object) -> None:
        """Send the map or the influence that the page requests, or the reason why there is none."""
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind not in ("map", "influence"):
            return
        reply = {"kind": kind, "id": content.get("id")}
        try:
            if kind == "influence" and self._influence_of is not None:
                self.send({**reply, "influence": self._influence_of(str(content.get("measure")))})
            else:
                self.send(reply, buffers=[self._bytes_of(str(content.get("head")))])
        except HeadscopeError as error:
            self.send({**reply, "trouble": str(error)})
        except Exception as error:
            self.send({**reply, "trouble": f"an internal error of headscope occurred ({type(error).__name__})"})
            raise
