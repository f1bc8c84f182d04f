"""Heads of two models compared: whether the heads of one have counterparts in the other (beyond Clark et al. §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure

if TYPE_CHECKING:
    from headscope.corpora import Corpus
    from headscope.studies.twins.spec import TwinsSpec


class TwinsStudy(Study):
    """A study of whether the heads of two models have twins in each other."""

    name = "twins"
    verb = "twins"
    function = "twins"
    folder = "twins"
    spec_class = "TwinsSpec"
    work_class = "TwinsWork"
    help = """Find twins of the heads of one model in another: heads that attend alike on the same texts.

    headscope twins mini bert-base-uncased
    headscope twins mini ./my-bert --corpus en.conllu --control --out TWINS
    headscope twins bert-base-uncased gpt2 --kind encoder,decoder --limit 500
    headscope twins ./seed-1 ./seed-2 --level token --epsilon 0.03
    headscope show TWINS twins_summary
    headscope plot TWINS twins -o twins.pdf
    """
    arguments = ("model", "other")
    files = ("other",)
    takes = ("other_model",)
    doing = "comparing"
    title = "Heads of two models"
    about = (
        "Do the heads of one model have twins in another? Both models read the same texts. The distance of two heads is the mean "
        "Jensen–Shannon divergence of their rows of attention, in nats; the twin of a head is the nearest head of the other model."
    )
    published = (
        "There are no published numbers to compare with: Clark et al. 2019 (§6) compare the heads of one model. Every head has a nearest "
        "head, so a distance alone says little: compare it with the distance to the nearest head of the same model and, with --control, "
        "of an untrained model."
    )
    figures = (
        StudyFigure(
            "twins",
            "all heads of two models as points, twins of each other joined, and the distances of their layers",
            "heads_and_layers",
            "twins_matrix",
            "twins A B",
            "Heads and layers of both models",
            "Left: heads that attend alike are close together, and lines join mutual twins. Right: the mean distance of the heads of "
            "each layer of one model to those of each layer of the other; the nearest layers are marked.",
            ("embedding", "sqrt"),
        ),
    )
    compared = (
        ComparedTable(
            "twins_summary", ("side", "quantity"), {"value": BOUNDS}, "distances of twins, and how many heads have one", drawn=True
        ),
        ComparedTable("twins_layers", ("side", "layer", "quantity"), {"value": BOUNDS}, "the same, layer by layer"),
        ComparedTable("twins", ("side", "kind", "layer", "head"), {"distance": BOUNDS}, "distance of each head from its twin"),
    )

    def resolve(self, spec: Any, corpora: Mapping[str, Corpus | None]) -> TwinsSpec:
        """The settings with the unit of text: a pair if the corpus has pairs of paragraphs, else a sentence."""
        corpus = corpora["corpus"]
        assert corpus is not None
        unit = spec.unit or ("pair" if corpus.pairs else "sentence")
        resolved: TwinsSpec = super().resolve(spec, corpora).model_copy(update={"unit": unit})
        return resolved
