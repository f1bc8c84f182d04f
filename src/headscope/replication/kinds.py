"""What makes results of each kind: from settings to a specification, and from that to results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headscope.errors import RunError

if TYPE_CHECKING:
    from headscope.runs.results import Results


class Kind(NamedTuple):
    """`make` takes settings (and what they are called in errors) to a specification, `work` does what that says."""

    make: Callable[..., Any]
    work: Callable[..., Results]


def kind_of(study: str | None) -> Kind:
    """What makes a study of that name, as `run.json` has it, or a run. What is not asked for is not imported."""
    match study:
        case None:
            from headscope.runs.execute import execute
            from headscope.runs.spec import make_spec

            return Kind(make_spec, execute)
        case "flow":
            from headscope.flows.spec import make_flow_spec
            from headscope.flows.study import study as flow

            return Kind(make_flow_spec, flow)
        case "ablation":
            from headscope.ablation.spec import make_ablation_spec
            from headscope.ablation.study import ablate

            return Kind(make_ablation_spec, ablate)
        case "attention_probe":
            from headscope.probes.attention.spec import make_attention_probe_spec
            from headscope.probes.attention.study import probe_attention

            return Kind(make_attention_probe_spec, probe_attention)
        case "structural_probe":
            from headscope.probes.structural.spec import make_structural_spec
            from headscope.probes.structural.study import probe_structural

            return Kind(make_structural_spec, probe_structural)
        case "edge_probe":
            from headscope.probes.edge.spec import make_edge_spec
            from headscope.probes.edge.study import probe_edge

            return Kind(make_edge_spec, probe_edge)
        case "keywords":
            from headscope.probes.keywords.spec import make_keyword_spec
            from headscope.probes.keywords.study import keywords

            return Kind(make_keyword_spec, keywords)
    raise RunError(f"a study of {study} is not known", "Update headscope")
