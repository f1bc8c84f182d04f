"""What makes results of each kind: from settings to a specification, and from that to results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from headscope.errors import RunError
from headscope.studies.registry import REGISTRY

if TYPE_CHECKING:
    from headscope.results.results import Results


class Kind(NamedTuple):
    """`make` takes settings (and what they are called in errors) to a specification, `work` does what that says."""

    make: Callable[..., Any]
    work: Callable[..., Results]


def kind_of(study: str | None) -> Kind:
    """What makes a study of that name, as `run.json` has it, or a run. What is not asked for is not imported."""
    match study:
        case None:
            from headscope.engine.spec import make_spec
            from headscope.runs.execute import execute

            return Kind(make_spec, execute)
        case name if name in REGISTRY:
            from headscope.studies.execute import execute as execute_study

            kind = REGISTRY[name]
            return Kind(kind.make, partial(execute_study, kind))
        case "ablation":
            from headscope.studies.ablation.spec import make_ablation_spec
            from headscope.studies.ablation.study import ablate

            return Kind(make_ablation_spec, ablate)
        case "attention_probe":
            from headscope.studies.attention_probe.spec import make_attention_probe_spec
            from headscope.studies.attention_probe.study import probe_attention

            return Kind(make_attention_probe_spec, probe_attention)
        case "keywords":
            from headscope.studies.keywords.spec import make_keyword_spec
            from headscope.studies.keywords.study import keywords

            return Kind(make_keyword_spec, keywords)
    raise RunError(f"a study of {study} is not known", "Update headscope")
