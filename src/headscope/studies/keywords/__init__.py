"""Keywords by attention: which heads tell the words of keyphrases from the others, alone and together (Štefánik)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure

if TYPE_CHECKING:
    from headscope.results.results import Results
    from headscope.studies.replicates import ReplicatedTables


class KeywordStudy(Study):
    """Which heads look at the words of keyphrases, and how well all of them together find those."""

    name = "keywords"
    verb = "probe keywords"
    function = "probe_keywords"
    folder = "keywords"
    spec_class = "KeywordSpec"
    work_class = "KeywordWork"
    help = """Find out which heads look at what is important, and how well all of them together find keyphrases (Štefánik).

    headscope probe keywords --out KEYS
    headscope probe keywords --corpus inspec-train.jsonl --dev inspec-dev.jsonl --out KEYS
    headscope probe keywords --corpus kpcrowd.jsonl --folds 10 --out KEYS
    headscope show KEYS keywords_scores
    headscope plot KEYS keywords -o heads.pdf
    """
    corpora = ("corpus", "dev")
    annotation = "keyphrases"
    doing = "reading"
    title = "What is important in a text"
    about = (
        "Whether heads look at the words of keyphrases more than at others, alone and together (after Štefánik). What is learnt is tried "
        "on documents that it was not learnt from."
    )
    published = (
        "Published: slides by Štefánik, for BERT fine-tuned to tag keyphrases: F1 .36, .37 after pruning, state of the art .42. His data "
        "and his way of counting are not known, so compare with the baselines here rather than with those numbers."
    )
    figures = (
        StudyFigure(
            "keywords",
            "which heads look at the words of keyphrases",
            "heads",
            "keywords_heads",
            "probe keywords",
            "Heads that look at keywords",
            "How much more attention a word of a keyphrase receives than another word of its text, in units of the spread within a text. "
            "Red heads look at keywords, blue ones past them; a dot marks what could hardly be chance, all heads considered.",
        ),
        StudyFigure(
            "keyword_losses",
            "heads ranked by the cross-entropy of a regression on one head, and what that saves",
            "losses",
            "keywords_heads",
            "probe keywords",
            "Heads that tell most alone",
            "Heads ranked by cross-entropy: that of a regression on the attention of one head, on documents that it was not learnt from. "
            "The dashed line is the cross-entropy of knowing only how frequent keywords are; what a head saves is how far it is left of "
            "the line. Heads that look past keywords tell as much as those that look at them.",
        ),
        StudyFigure(
            "keyword_curves",
            "F1 of the regression on heads by threshold and by the number of heads kept",
            "curves",
            "keywords_curves",
            "probe keywords",
            "F1 by threshold and by number of heads",
            "F1 of the logistic regression on heads. Left: by the chance from which on a word is taken, with all heads. Right: with only "
            "the heads of the lowest cross-entropy, each number of heads learnt and tuned anew.",
        ),
        StudyFigure(
            "keyword_scores",
            "how well heads find keywords, beside baselines",
            "scores",
            "keywords_scores",
            "probe keywords",
            "Finding keywords",
            "F1 of all heads together, of the best one, and of one mix, beside baselines that know nothing of attention (grey). A phrase "
            "counts only if it is found exactly.",
        ),
    )
    compared = (ComparedTable("keywords_scores", ("level", "system"), {"f1": BOUNDS}, "how well keywords are found", drawn=True),)

    def replicates(self, results: Results) -> ReplicatedTables:
        """F1 of each system, with replicates."""
        from headscope.studies.keywords.tables import replicates

        return replicates(results)
