"""The Python interface: what `import headscope as hs` gives."""

from __future__ import annotations

from headscope.api.corpora import annotate, check_corpus, corpus_stats
from headscope.api.models import load
from headscope.api.results import Compared, Measured, Run, StudyResult, TwinHeads, compare, heads, open_run, open_study, rerun
from headscope.api.running import inspect, keywords, measure, plan, run, train, view
from headscope.api.studies import (
    ablate,
    flow,
    in_context,
    plan_study,
    probe_attention,
    probe_edge,
    probe_keywords,
    probe_structural,
    prune,
    replicate,
    retrieval,
    study,
    twins,
)
from headscope.core.document import Word
from headscope.corpora import read

__all__ = [
    "Compared",
    "Measured",
    "Run",
    "StudyResult",
    "TwinHeads",
    "Word",
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
