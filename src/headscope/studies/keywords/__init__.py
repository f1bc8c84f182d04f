"""Keywords by attention: which heads distinguish the words of keyphrases, alone and together (Štefánik)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure

if TYPE_CHECKING:
    from headscope.results.results import Results
    from headscope.studies.replicates import ReplicatedTables


class KeywordStudy(Study):
    """A study of which heads attend to keyphrases, and how well all heads together find them."""

    name = "keywords"
    verb = "probe keywords"
    function = "probe_keywords"
    folder = "keywords"
    spec_class = "KeywordSpec"
    work_class = "KeywordWork"
    help = """Measure which heads attend to keyphrases, and how well all heads together find them (Štefánik).

    headscope probe keywords --out KEYS
    headscope probe keywords --corpus inspec-train.jsonl --dev inspec-dev.jsonl --out KEYS
    headscope probe keywords --corpus kpcrowd.jsonl --folds 10 --out KEYS
    headscope show KEYS keywords_scores
    headscope plot KEYS keywords -o heads.pdf
    """
    corpora = ("corpus", "dev")
    annotation = "keyphrases"
    doing = "reading"
    title = "Keyphrases from attention"
    about = (
        "Do heads attend to the words of keyphrases more than to others, alone and together (after Štefánik)? Everything learnt is "
        "tested on held-out documents."
    )
    published = (
        "Published: slides by Štefánik, for BERT fine-tuned to tag keyphrases: F1 .36, .37 after pruning, state of the art .42. His data "
        "and scoring are not known, so compare with the baselines here rather than with those numbers."
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
            "Red heads attend to keywords, blue heads avoid them; dots mark significant heads, corrected for all heads.",
        ),
        StudyFigure(
            "keyword_losses",
            "heads ranked by the cross-entropy of a regression on one head, and what each head saves",
            "losses",
            "keywords_heads",
            "probe keywords",
            "The most informative single heads",
            "Heads ranked by the cross-entropy, on held-out documents, of a regression on the attention of one head. The dashed line is "
            "the cross-entropy if only the frequency of keywords is known; a head saves its distance to the left of the line. Heads that "
            "avoid keywords are as informative as those that attend to them.",
        ),
        StudyFigure(
            "keyword_curves",
            "F1 of the regression on heads by threshold and by the number of heads kept",
            "curves",
            "keywords_curves",
            "probe keywords",
            "F1 by threshold and by number of heads",
            "F1 of the logistic regression on heads. Left: by the probability threshold for a word, with all heads. Right: with only the "
            "heads of the lowest cross-entropy, trained and tuned again for each number of heads.",
        ),
        StudyFigure(
            "keyword_scores",
            "how well heads find keywords, with baselines",
            "scores",
            "keywords_scores",
            "probe keywords",
            "Finding keywords",
            "F1 of all heads together, of the best head, and of a weighted mix, with baselines without attention (grey). A phrase counts "
            "only if it is found exactly.",
        ),
    )
    compared = (ComparedTable("keywords_scores", ("level", "system"), {"f1": BOUNDS}, "how well keywords are found", drawn=True),)

    def replicates(self, results: Results) -> ReplicatedTables:
        """F1 of each system, with replicates."""
        from headscope.studies.keywords.tables import replicates

        return replicates(results)
