"""What a report says of a study by edge probing."""

from __future__ import annotations

TITLE = "Where in the model it is known"
ABOUT = (
    "Probes label words and pairs of words from the model's hidden states. A probe that may use layers 0 to ℓ scores at least what one "
    "with fewer layers could; what a layer adds says where the information comes up (Tenney et al. 2019). Layer 0 is the embeddings."
)
PUBLISHED = (
    "Published: Tenney et al. 2019, for BERT-base. Selectivity is what the probe with all layers scores beyond one that was trained on "
    "labels by lot, one for each word type (Hewitt and Liang 2019): where it is small, the probe could have learned the words by heart. K "
    "is in bits: 0 where all layers are alike."
)
FIGURES = (
    (
        "tenney1",
        "edge_mix",
        "Tasks in the order of their layers",
        "The expected layer is the mean layer, weighted by what each adds to F1; the centre of gravity is that of the weights with which "
        "the probe that sees all layers mixes them. An arrow is a value outside of the model: layers that make the score worse count, too.",
    ),
    (
        "tenney2",
        "edge_mix",
        "What each layer is used for, and what it adds",
        "Left, how much of each layer is in the mix; right, what each layer adds to F1, as a share of all that layers add.",
    ),
    ("layerscores", "edge_scores", "Scores by layer", "Bands are 95% intervals over documents and seeds."),
    (
        "tenney3",
        "edge_beliefs",
        "Beliefs that turn",
        "What probes believe of single examples with each layer more; shown are those whose decision turns most clearly on the way.",
    ),
)
