"""Attaching a gallery to a finished run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headscope.encoding.choices import Rows
from headscope.engine.plan import CorpusReading as Way
from headscope.engine.plan import Plan
from headscope.engine.sample import Sample
from headscope.gallery.build import GalleryReading, build_gallery
from headscope.results.gallery import Gallery
from headscope.results.results import LEFT_OUT, Results
from headscope.results.table import Table

if TYPE_CHECKING:
    from headscope.gallery.build import Look

TOO_LONG = f"{LEFT_OUT}: texts are too long to keep their maps"


def attach_gallery(results: Results, plan: Plan, sampled: Sequence[tuple[Way, Sample]], look: Look, rows: Rows) -> Results:
    """Add the gallery of example texts to a finished run, and return it. Where all texts of a reading are too long
    for one, the manifest says so.
    """
    texts = [sample.texts() for _, sample in sampled]
    readings = [GalleryReading(some, way.measures) for some, (way, _) in zip(texts, sampled, strict=True) if some]
    without = [way.unit for some, (way, sample) in zip(texts, sampled, strict=True) if not some and sample.too_long]

    def make(tables: Mapping[str, Table]) -> Gallery | None:
        return build_gallery(plan, readings, look, tables, rows) if readings else None

    return results.with_gallery(make, [TOO_LONG] if not readings else [f"{TOO_LONG}, by {unit}" for unit in without])
