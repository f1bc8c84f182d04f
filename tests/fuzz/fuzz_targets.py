"""All readers by name."""

from __future__ import annotations

from importlib import import_module

from fuzz_engine import Target

# Where the readers are whose names begin so: some need a run or a model to be made first.
_GROUPS = {"corpus/": "fuzz_corpora", "vectors/": "fuzz_corpora", "run/": "fuzz_runs", "maps/": "fuzz_runs", "spec": "fuzz_runs"}
_GROUPS |= {"model/": "fuzz_models", "view": "fuzz_models", "app/": "fuzz_app"}


def all_targets(beginning: str = "") -> list[Target]:
    """Every reader that takes what somebody else wrote, or those whose names begin so."""
    wanted = dict.fromkeys(module for group, module in _GROUPS.items() if group.startswith(beginning) or beginning.startswith(group))
    found: list[Target] = [target for module in wanted for target in import_module(module).targets()]
    return [target for target in found if target.name.startswith(beginning)]
