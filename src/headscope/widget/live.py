"""The live widget. It needs anywidget, so nothing imports this module before it is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from headscope.errors import HeadscopeError
from headscope.views.page import bundle


class LiveView(anywidget.AnyWidget):
    """The views' bundle with its data. Maps that the data do not hold are asked for one by one, and sent as bytes."""

    _esm = bundle()
    data = traitlets.Dict().tag(sync=True)
    head = traitlets.Unicode(None, allow_none=True).tag(sync=True)  # the chosen one of a run

    def __init__(self, data: dict[str, Any], bytes_of: Callable[[str], bytes]) -> None:
        super().__init__(data=data, head=data.get("head"))
        self._bytes_of = bytes_of
        self.on_msg(self._answer)

    def _answer(self, _: object, content: Any, buffers: object) -> None:
        """Send the map that the page asks for, or say why there is none."""
        if not isinstance(content, dict) or content.get("kind") != "map":
            return
        reply = {"kind": "map", "id": content.get("id")}
        try:
            self.send(reply, buffers=[self._bytes_of(str(content.get("head")))])
        except HeadscopeError as error:
            self.send({**reply, "trouble": str(error)})
        except Exception as error:
            self.send({**reply, "trouble": f"something went wrong inside headscope ({type(error).__name__})"})
            raise
