"""What a report says of a structural probe."""

from __future__ import annotations

from headscope.studies.structural_probe import StructuralProbeStudy

TITLE, ABOUT, PUBLISHED = StructuralProbeStudy.title, StructuralProbeStudy.about, StructuralProbeStudy.published
FIGURES = tuple((figure.name, figure.table, figure.title, figure.about) for figure in StructuralProbeStudy.figures)
