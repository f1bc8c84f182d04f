"""All targets, found by name."""

from __future__ import annotations

from importlib import import_module

from fuzz_engine import Target

# The module for each prefix of a target's name. Modules are imported only if needed: some make a run or a model.
_GROUPS = {"corpus/": "fuzz_corpora", "vectors/": "fuzz_corpora", "run/": "fuzz_runs", "maps/": "fuzz_runs", "spec": "fuzz_runs"}
_GROUPS |= {"model/": "fuzz_models", "view": "fuzz_models", "app/": "fuzz_app"}


def all_targets(beginning: str = "") -> list[Target]:
    """A target for every reader of foreign input, or only the targets whose names have this beginning."""
    wanted = dict.fromkeys(module for group, module in _GROUPS.items() if group.startswith(beginning) or beginning.startswith(group))
    found: list[Target] = [target for module in wanted for target in import_module(module).targets()]
    return [target for target in found if target.name.startswith(beginning)]
