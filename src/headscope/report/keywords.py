"""What the report says of keywords by attention."""

from __future__ import annotations

TITLE = "What is important in a text"
ABOUT = (
    "Whether heads look at the words of keyphrases more than at others, alone and together (after Štefánik). What is learnt is tried on "
    "documents that it was not learnt from."
)
FIGURES = (
    (
        "keywords",
        "keywords_heads",
        "Heads that look at keywords",
        "How much more attention a word of a keyphrase receives than another word of its text, in units of the spread within a text. Red "
        "heads look at keywords, blue ones past them; a dot marks what could hardly be chance, all heads considered.",
    ),
    (
        "keyword_losses",
        "keywords_heads",
        "Heads that tell most alone",
        "Heads ranked by cross-entropy: that of a regression on the attention of one head, on documents that it was not learnt from. "
        "The dashed line is the cross-entropy of knowing only how frequent keywords are; what a head saves is how far it is left of the "
        "line. Heads that look past keywords tell as much as those that look at them.",
    ),
    (
        "keyword_curves",
        "keywords_curves",
        "F1 by threshold and by number of heads",
        "F1 of the logistic regression on heads. Left: by the chance from which on a word is taken, with all heads. Right: with only the "
        "heads of the lowest cross-entropy, each number of heads learnt and tuned anew.",
    ),
    (
        "keyword_scores",
        "keywords_scores",
        "Finding keywords",
        "F1 of all heads together, of the best one, and of one mix, beside baselines that know nothing of attention (grey). A phrase "
        "counts only if it is found exactly.",
    ),
)
PUBLISHED = (
    "Published: slides by Štefánik, for BERT fine-tuned to tag keyphrases: F1 .36, .37 after pruning, state of the art .42. His data and "
    "his way of counting are not known, so compare with the baselines here rather than with those numbers."
)
