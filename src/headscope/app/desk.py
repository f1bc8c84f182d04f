"""What a server has: its runs, its models, the texts it was sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headscope.app.limits import Limits
from headscope.app.models import Models
from headscope.app.shelf import Shelf
from headscope.app.texts import Texts


@dataclass(frozen=True)
class Desk:
    """Where requests find what they are about."""

    shelf: Shelf
    models: Models
    texts: Texts
    limits: Limits

    def public(self, text: str) -> str:
        """A message with what runs and models are called here in place of where they are, which is nobody's business."""
        places = {path: name for path, name in (self.shelf.places() | self.models.places()).items() if len(Path(path).parts) > 1}
        for path in sorted(places, key=len, reverse=True):
            text = text.replace(path, places[path])
        return text

    def close(self) -> None:
        """Begin no more work."""
        self.shelf.close()
        self.models.close()
