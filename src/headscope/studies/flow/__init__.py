"""Information flow between words, and its association with coreference, parts of speech and trees (Westera)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure

if TYPE_CHECKING:
    from headscope.corpora import Corpus
    from headscope.studies.flow.spec import FlowSpec


class FlowStudy(Study):
    """How much words bear on each other, and what that is associated with."""

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
    title = "How words bear on each other"
    about = (
        "Attention (A) is what the model's heads give; G is how strongly a token's state after a layer depends on another token's state "
        "before it, and G* on the other token at the input: sizes of Jacobians (Westera)."
    )
    published = (
        "Published: Westera, for BERT-base; t over layers pooled as if they were independent, which “layers pooled” repeats. Compare "
        "shapes, not decimals: the model and the texts are others, and t grows with their number. A best layer is chosen on other "
        "documents than those it is scored on."
    )
    figures = (
        StudyFigure(
            "westera1",
            "Westera, Figure 1: flow from a noun to a pronoun of the same entity and of another, by layer",
            "coreference",
            "flow_coreference",
            "flow --parts coreference",
            "From nouns to pronouns",
            "Does more flow from a noun to a later pronoun if both mean the same thing? Pairs of two entities are the comparison. Near "
            "words bear more on each other than far ones, so the tests that count are those at equal distance.",
        ),
        StudyFigure(
            "westera2",
            "Westera, Figure 2: what words of open and closed classes contribute, by layer",
            "classes",
            "flow_classes",
            "flow --parts classes",
            "Open and closed classes",
            "How much does a word bear on all tokens of its sentence, itself included? The mean over the words of a class.",
        ),
        StudyFigure(
            "trees",
            "flow and the dependency tree: correlation with distance, and arcs of spanning trees, by layer",
            "trees",
            "flow_tree_distances",
            "flow --parts trees",
            "Dependency trees",
            "Is flow stronger between words that are near in the tree? Words near in the tree are mostly near in the sentence, too: the "
            "dashed lines say what that alone would give.",
        ),
        StudyFigure(
            "agreement",
            "whether attention and gradients agree, by layer",
            "agreement",
            "flow_agreement",
            "flow --parts agreement",
            "Attention and gradients",
            "If attention were all that mattered, the measures would agree. All entries count, also each token's flow to itself.",
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
        """The settings with nothing left open; an error where a part lacks its annotation."""
        from headscope.studies.flow.spec import NEEDS

        corpus = corpora["corpus"]
        assert corpus is not None
        resolved: FlowSpec = spec.resolved(corpus.layers(set(NEEDS.values())))
        return resolved
