"""Information flow between words, and its association with coreference, parts of speech and trees (Westera)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure

if TYPE_CHECKING:
    from headscope.corpora import Corpus
    from headscope.studies.flow.spec import FlowSpec


class FlowStudy(Study):
    """A study of influence between words and its association with annotation."""

    name = "flow"
    verb = "flow"
    function = "flow"
    folder = "flow"
    spec_class = "FlowSpec"
    work_class = "FlowWork"
    help = """Measure how much each word influences each other word, and its link to coreference, parts of speech and trees (Westera).

    headscope flow --out FLOW
    headscope flow --corpus gum-dev.conllu --measures A,G --out FLOW
    headscope flow --corpus ontogum-dev.conllu --parts coreference --items 500 --draw matched --out PAIRS
    headscope flow --model bert-base-uncased --corpus gum-dev.conllu --preset reference --out FLOW
    headscope show FLOW flow_coreference
    headscope plot FLOW westera1 -o figure1.pdf
    """
    doing = "differentiating"
    title = "Influence between words"
    about = (
        "Attention (A) is the mean over the heads of a layer. G and G* are norms of Jacobians: G measures how strongly a token's state "
        "after a layer depends on another token's state before it, and G* how strongly it depends on the other token's embedding "
        "(Westera)."
    )
    published = (
        "Published: Westera, for BERT-base; t values pool layers as if they were independent, as in the rows “layers pooled”. Compare "
        "shapes, not decimals: model and texts differ, and t grows with the number of texts. The best layer is chosen on some documents "
        "and scored on others."
    )
    figures = (
        StudyFigure(
            "westera1",
            "Westera, Figure 1: flow from a noun to a pronoun of the same entity and of another, by layer",
            "coreference",
            "flow_coreference",
            "flow --parts coreference",
            "From nouns to pronouns",
            "Does a noun influence a later pronoun more if both refer to the same entity? Pairs of two different entities are the "
            "comparison. Near words influence each other more than distant ones, so use the tests at equal distance.",
        ),
        StudyFigure(
            "westera2",
            "Westera, Figure 2: what words of open and closed classes contribute, by layer",
            "classes",
            "flow_classes",
            "flow --parts classes",
            "Open and closed classes",
            "How much does a word influence all tokens of its sentence, itself included? The mean over the words of a class.",
        ),
        StudyFigure(
            "trees",
            "flow and the dependency tree: correlation with distance, and arcs of spanning trees, by layer",
            "trees",
            "flow_tree_distances",
            "flow --parts trees",
            "Dependency trees",
            "Is influence stronger between words that are close in the tree? Words close in the tree are mostly close in the sentence as "
            "well: the dashed lines show the effect of distance in the sentence alone.",
        ),
        StudyFigure(
            "agreement",
            "whether attention and gradients agree, by layer",
            "agreement",
            "flow_agreement",
            "flow --parts agreement",
            "Attention and gradients",
            "If influence depended on attention alone, the measures would agree. All entries count, including the influence of each "
            "token on itself.",
        ),
    )
    compared = (
        ComparedTable("summary", ("part", "what", "measure"), {"value": BOUNDS}, "what was found", drawn=True),
        ComparedTable(
            "flow_tree_distances", ("variant", "method", "measure", "layer"), {"value": BOUNDS}, "flow and distances in trees", drawn=True
        ),
        ComparedTable("flow_classes", ("class", "measure", "layer"), {"value": BOUNDS}, "flow from classes of words", drawn=True),
    )

    def resolve(self, spec: Any, corpora: Mapping[str, Corpus | None]) -> FlowSpec:
        """The complete settings; an error if a part lacks its annotation."""
        from headscope.studies.flow.spec import NEEDS

        corpus = corpora["corpus"]
        assert corpus is not None
        resolved: FlowSpec = spec.resolved(corpus.layers(set(NEEDS.values())))
        return resolved
