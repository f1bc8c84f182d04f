"""Edge probing, after Tenney et al.: what the layers of a model encode about labelled spans and pairs of spans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headscope.errors import RunError
from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure

if TYPE_CHECKING:
    from headscope.corpora import Corpus
    from headscope.results.results import Results
    from headscope.studies.edge_probe.spec import EdgeSpec


class EdgeProbeStudy(Study):
    """A study of what each layer adds to the score of each task."""

    name = "edge_probe"
    verb = "probe edge"
    function = "probe_edge"
    folder = "edge"
    spec_class = "EdgeSpec"
    work_class = "EdgeProbeWork"
    help = """Train probes on layers 0, 0 to 1, 0 to 2, ... and see what each layer adds to each task (Tenney et al. 2019).

    headscope probe edge --tasks pos --out EDGE
    headscope probe edge --corpus train.conllu --dev dev.conllu --tasks pos,deps --limit 0 --out EDGE
    headscope probe edge --corpus train.jsonl --look mine.jsonl --single --out EDGE
    headscope probe join EDGE1 EDGE2 --out ALL
    headscope show EDGE edge_scores
    headscope plot EDGE tenney2 -o figure2.pdf
    headscope plot EDGE tenney3 --quantity pos/2 -o belief.pdf
    """
    corpora = ("corpus", "dev", "look")
    doing = "probing"
    stops_early = True
    title = "What each layer encodes"
    about = (
        "Probes label words and pairs of words from the model's hidden states. A probe that uses layers 0 to ℓ can score at least as "
        "well as one with fewer layers; what a layer adds shows where the information appears (Tenney et al. 2019). Layer 0 is the "
        "embeddings."
    )
    published = (
        "Published: Tenney et al. 2019, for BERT-base. Selectivity is the score of the probe with all layers minus that of a probe "
        "trained on random labels, one per word type (Hewitt and Liang 2019): if it is small, the probe may have memorised words. K is "
        "in bits: 0 if all layers are alike."
    )
    figures = (
        StudyFigure(
            "tenney1",
            "Tenney et al. 2019, Figure 1: tasks by expected layer and centre of gravity",
            "order",
            "edge_mix",
            "probe edge",
            "Tasks in order of their layers",
            "The expected layer is the mean layer, weighted by what each adds to F1; the centre of gravity is the mean layer, weighted "
            "by the mix of the probe that sees all layers. An arrow marks a value outside the range of layers, which is possible because "
            "layers that make the score worse count as well.",
        ),
        StudyFigure(
            "tenney2",
            "Tenney et al. 2019, Figure 2: mixing weights and what each layer adds to the score, one row per task",
            "layers",
            "edge_mix",
            "probe edge",
            "What each layer is used for, and what it adds",
            "Left: the weight of each layer in the mix. Right: what each layer adds to F1, as a share of the total gain.",
        ),
        StudyFigure(
            "layerscores",
            "F1 by layer: cumulative, single layers, and random labels",
            "scores",
            "edge_scores",
            "probe edge",
            "Scores by layer",
            "Bands are 95% intervals over documents and seeds.",
        ),
        StudyFigure(
            "tenney3",
            "Tenney et al. 2019, Figure 3: probabilities by layer for single examples; --quantity pos/2 names one",
            "beliefs",
            "edge_beliefs",
            "probe edge",
            "Decisions that change",
            "Probabilities of single examples as layers are added; selected automatically: the examples whose decision changes most "
            "clearly.",
            choices=("bars",),
            quantity=True,
        ),
    )
    compared = (
        ComparedTable(
            "summary",
            ("task",),
            {"embeddings": None, "all_layers": None, "expected_layer": BOUNDS, "centre": None, "selectivity": None},
            "each task",
            drawn=True,
        ),
        ComparedTable("edge_scores", ("task", "probe", "layer"), {"score": BOUNDS}, "scores by layer", drawn=True),
    )

    def resolve(self, spec: Any, corpora: Mapping[str, Corpus | None]) -> EdgeSpec:
        """The settings with the tasks that the corpus has; an error for a task that a corpus cannot label."""
        from headscope.studies.edge_probe.reading import found_tasks

        train, dev = corpora["corpus"], corpora["dev"]
        assert train is not None
        resolved: EdgeSpec = spec.resolved(found_tasks(train, spec.choices, spec.tasks, ", ".join(spec.corpus)))
        if dev is not None:
            found_tasks(dev, resolved.choices, resolved.tasks, ", ".join(resolved.dev))
        return resolved

    def refuse_rerun(self, results: Results) -> None:
        """Raise an error for results that `headscope probe join` made from several studies."""
        if any(part.startswith("joined:") for part in results.signature.split("|")):
            raise RunError(f"{results.path} was joined from several studies", "Rerun those, each in its own folder")
