"""What a report says of a study of attention probes."""

from __future__ import annotations

TITLE = "What all heads together know of syntax"
ABOUT = (
    "Probes find the governor of each word from the attention of all heads at once, to and from each candidate: by one weight a head, or "
    "by weights that depend on the two words (Clark et al. 2019, §5). Beside them stand what words and distances find without attention, "
    "what the same probes find in a model with random weights, and the next word."
)
PUBLISHED = (
    "Published: Clark et al. 2019, Table 3, for BERT-base on the Penn Treebank with Stanford Dependencies. UAS is without punctuation; "
    "their 26 for right-branching is with it, as the column with_punct is. Compare shapes, not decimals: the model, the treebank and its "
    "size are others."
)
FIGURES = (
    (
        "table3",
        "attention_probe",
        "Governors found",
        "Each bar is the mean over seeds, each dot a seed; lines are 95 % intervals over documents. What is above words and distances is "
        "owed to attention, what is above random weights to training.",
    ),
    (
        "probe_heads",
        "attention_probe_heads",
        "The heads that the probe leans on",
        "Blue heads pull towards the governor: their attention between a word and its governor, times their weight, is above what the "
        "word's other pairs have. The numbers are the weights themselves; a head that attends faintly can have a large one.",
    ),
    (
        "probe_relations",
        "attention_probe_relations",
        "Relation by relation",
        "The most frequent relations, with the number of their words.",
    ),
)
