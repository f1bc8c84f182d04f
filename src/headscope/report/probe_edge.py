"""What a report says of a study by edge probing."""

from __future__ import annotations

from headscope.studies.edge_probe import EdgeProbeStudy

TITLE, ABOUT, PUBLISHED = EdgeProbeStudy.title, EdgeProbeStudy.about, EdgeProbeStudy.published
FIGURES = tuple((figure.name, figure.table, figure.title, figure.about) for figure in EdgeProbeStudy.figures)
