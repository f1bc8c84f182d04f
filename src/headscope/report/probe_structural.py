"""What a report says of a structural probe."""

from __future__ import annotations

TITLE = "Trees in vectors"
ABOUT = (
    "Is there a linear map under which squared distances between the vectors of words are their distances in the dependency tree, and "
    "another under which squared lengths are depths (Hewitt & Manning 2019)? Layer 0 is the embeddings, layer n what block n gives "
    "(hidden_states[n] of Hugging Face)."
)
PUBLISHED = (
    "Published: Hewitt & Manning 2019, test set of the Penn Treebank (UUAS / DSpr / Root % / NSpr). Compare shapes, not decimals: the "
    "model is another, and so are the treebank and its trees. Their BERTbase7 may be layer 7 or 8 in the numbering used here. Their ELMo0, "
    "Decay0 and Proj0 begin from embeddings without positions; BERT's layer 0 has them, which trees gain from."
)
FIGURES = (
    (
        "structural",
        "structural",
        "By layer",
        "How much of the trees comes out of each layer, beside a model with redrawn weights, vectors of layer 0 that were averaged or read "
        "by an untrained BiLSTM, and a chain of words.",
    ),
    ("structural_ranks", "structural_ranks", "By rank", "In how few dimensions trees lie: probes of smaller and larger rank on one layer."),
    (
        "structural_trees",
        "structural_trees",
        "Some trees",
        "Above the words, the tree; below, the smallest spanning tree of predicted distances. Edges that the tree has, too, are blue; "
        "punctuation, in grey, is left out.",
    ),
)
