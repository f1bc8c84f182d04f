"""What a server has: its runs, its models, the texts it was sent."""

from __future__ import annotations

from dataclasses import dataclass

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

    def close(self) -> None:
        """Begin no more work."""
        self.shelf.close()
        self.models.close()
