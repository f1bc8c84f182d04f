"""The structural probe of Hewitt & Manning (2019): trees as distances and depths of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure

if TYPE_CHECKING:
    from headscope.results.results import Results


class StructuralProbeStudy(Study):
    """A study of whether a linear map of a layer turns distances between words into those of the tree."""

    name = "structural_probe"
    verb = "probe structural"
    function = "probe_structural"
    folder = "structural"
    spec_class = "StructuralSpec"
    work_class = "StructuralProbeWork"
    help = """Train the structural probe (Hewitt & Manning 2019): a linear map under which distances between words are those of the tree.

    headscope probe structural --out PROBE
    headscope probe structural --corpus en_ewt-train.conllu --dev en_ewt-dev.conllu --seeds 3 --out PROBE
    headscope probe structural --model bert-base-cased --corpus train.conllu --dev dev.conllu --layers 6-8 --out PROBE
    headscope show PROBE structural
    headscope plot PROBE structural -o layers.pdf
    headscope plot PROBE structural_ranks -o ranks.pdf
    """
    corpora = ("corpus", "dev")
    annotation = "trees"
    doing = "probing"
    stops_early = True
    title = "Syntax trees in hidden states"
    about = (
        "Is there a linear map under which squared distances between the vectors of words are their distances in the dependency tree, "
        "and another under which squared lengths are depths (Hewitt & Manning 2019)? Layer 0 is the embeddings, layer n the output of "
        "block n (hidden_states[n] of Hugging Face)."
    )
    published = (
        "Published: Hewitt & Manning 2019, test set of the Penn Treebank (UUAS / DSpr / Root % / NSpr). Compare shapes, not decimals: "
        "model, treebank and kind of trees differ. Their BERTbase7 may be layer 7 or 8 in the numbering used here. Their ELMo0, Decay0 "
        "and Proj0 start from embeddings without positions; BERT's layer 0 has positions, which helps to predict trees."
    )
    figures = (
        StudyFigure(
            "structural",
            "Hewitt & Manning 2019: trees in vectors, by layer, with baselines",
            "layers",
            "structural",
            "probe structural",
            "By layer",
            "How much of the trees each layer encodes. Baselines: a model with random weights, vectors of layer 0 averaged or read by an "
            "untrained BiLSTM, and a chain of words.",
        ),
        StudyFigure(
            "structural_ranks",
            "Hewitt & Manning 2019: trees in vectors, by the rank of the probe",
            "ranks",
            "structural_ranks",
            "probe structural",
            "By rank",
            "The number of dimensions that trees need: probes of smaller and larger rank on one layer.",
        ),
        StudyFigure(
            "structural_trees",
            "Hewitt & Manning 2019: some trees, and those predicted from distances; --quantity 2,5 selects sentences",
            "trees",
            "structural_trees",
            "probe structural",
            "Some trees",
            "Above the words: the tree. Below: the minimum spanning tree of predicted distances. Edges that are also in the tree are "
            "blue; punctuation, in grey, is omitted.",
            quantity=True,
        ),
    )
    compared = (
        ComparedTable("structural", ("source", "metric", "layer"), {"value": BOUNDS}, "trees in vectors", drawn=True),
        ComparedTable("structural_ranks", ("source", "layer", "metric", "rank"), {"value": BOUNDS}, "trees in vectors, by rank"),
    )

    def findings(self, results: Results) -> list[str]:
        """The findings, in plain sentences."""
        from headscope.studies.structural_probe.findings import sentences

        return sentences(results, results.manifest["best_layer"])
