"""The Python interface: load, train, read, run, measure, view; studies of flow, ablation, probes and twins; open_run, open_study."""

from __future__ import annotations

from headscope.api.again import rerun
from headscope.api.results import Compared, Measured, Run, Study, TwinHeads, compare, open_run, open_study
from headscope.api.running import annotate, keywords, load, measure, run, train, view
from headscope.api.studies import ablate, flow, probe_attention, probe_edge, probe_keywords, probe_structural, replicate, twins
from headscope.core.document import Word
from headscope.corpora import read

__all__ = [
    "Compared",
    "Measured",
    "Run",
    "Study",
    "TwinHeads",
    "Word",
    "ablate",
    "annotate",
    "compare",
    "flow",
    "keywords",
    "load",
    "measure",
    "open_run",
    "open_study",
    "probe_attention",
    "probe_edge",
    "probe_keywords",
    "probe_structural",
    "read",
    "replicate",
    "rerun",
    "run",
    "train",
    "twins",
    "view",
]
