"""headscope: what the attention heads of a Transformer look at, and whether it matters, in numbers.

>>> import headscope as hs
>>> run = hs.run("mini", "sampler", ["positions", "entropy"], limit=4)
>>> run.measures
['positions', 'entropy']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headscope.api import (
        Run,
        StudyResult,
        ablate,
        annotate,
        check_corpus,
        compare,
        corpus_stats,
        flow,
        heads,
        in_context,
        inspect,
        keywords,
        load,
        measure,
        open_run,
        open_study,
        plan,
        plan_study,
        probe_attention,
        probe_edge,
        probe_keywords,
        probe_structural,
        prune,
        read,
        replicate,
        rerun,
        retrieval,
        run,
        study,
        train,
        twins,
        view,
    )

    __version__: str

__all__ = [
    "Run",
    "StudyResult",
    "ablate",
    "annotate",
    "check_corpus",
    "compare",
    "corpus_stats",
    "flow",
    "heads",
    "in_context",
    "inspect",
    "keywords",
    "load",
    "measure",
    "open_run",
    "open_study",
    "plan",
    "plan_study",
    "probe_attention",
    "probe_edge",
    "probe_keywords",
    "probe_structural",
    "prune",
    "read",
    "replicate",
    "rerun",
    "retrieval",
    "run",
    "study",
    "train",
    "twins",
    "view",
]


def __getattr__(name: str) -> Any:
    """Import the interface when it is first used: `import headscope` alone costs nothing."""
    if name in __all__:
        return getattr(import_module("headscope.api"), name)
    if name == "__version__":
        from headscope.core.versions import version_of

        return version_of("headscope")
    raise AttributeError(f"module 'headscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]
