"""What a server has: its runs, its models, the texts it was sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headscope.app.limits import Limits
from headscope.app.models import ServedModels
from headscope.app.served_runs import ServedRuns
from headscope.app.texts import SentTexts


@dataclass(frozen=True)
class AppState:
    """Where requests find what they are about."""

    runs: ServedRuns
    models: ServedModels
    texts: SentTexts
    limits: Limits

    def public(self, text: str) -> str:
        """A message with what runs and models are called here in place of where they are, which is nobody's
        business.
        """
        places = {path: name for path, name in (self.runs.places() | self.models.places()).items() if len(Path(path).parts) > 1}
        for path in sorted(places, key=len, reverse=True):
            text = text.replace(path, places[path])
        return text

    def close(self) -> None:
        """Begin no more work."""
        self.runs.close()
        self.models.close()
