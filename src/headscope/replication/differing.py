"""What differs by nature between a claim and our number: model, data, settings, size. It stands in every row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headscope.replication.recipe import Claim, Step
from headscope.replication.steps import StepContext
from headscope.results.results import Results

_SPOKEN = {
    "limit": "texts", "limit_dev": "texts to try", "items": "pairs", "seeds": "seeds", "epochs": "epochs",
    "replicates": "bootstrap replicates", "checks": "checks of training", "orders": "orders of chance",
}  # fmt: skip


def differing(context: StepContext, claim: Claim, done: Mapping[str, Results]) -> str:
    """The differences of a claim's steps, each said once, and what the recipe says of this claim."""
    found: list[str] = []
    for name in dict.fromkeys(place.step for place in claim.places):
        if name in done:
            found += [part for part in step_differs(context, context.recipe.step(name), done[name]) if part not in found]
    return "; ".join([*found, *([claim.differs] if claim.differs else [])])


def step_differs(context: StepContext, step: Step, results: Results) -> list[str]:
    """What was other in a step than in the paper."""
    theirs, manifest = step.theirs, results.manifest
    model = Path(context.model).name
    found = [] if model.casefold() == theirs.model.casefold() else [f"model: {model}, not {theirs.model}"]
    if step.model is not None:
        found = [f"model: {model}, trained here, not {theirs.model}"]
    texts = manifest.get("counts", {}).get("texts")
    names = ", ".join(Path(name).name for name in context.corpus(step) or ())
    found.append(f"data: {names} ({texts:,} texts), not {theirs.data}" if texts else f"data: {names}, not {theirs.data}")
    settings: Mapping[str, Any] = manifest["settings"]
    for name, value in theirs.settings.items():
        if name in settings and _plain(settings[name]) != _plain(value):
            found.append(f"{name}: {_said(settings[name])}, not {_said(value)}")
    brief = {} if context.full else {name: value for name, value in step.brief.items() if name != "limit" or (texts or 0) >= value}
    if brief:
        told = ", ".join(f"{_SPOKEN.get(name, name)} {_said(value)}" for name, value in brief.items())
        found.append(f"kept short: {told} (--full lifts it)")
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _said(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
