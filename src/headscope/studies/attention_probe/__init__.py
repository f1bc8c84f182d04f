"""Attention probes: how many governors the attention of all heads together finds (Clark et al. 2019, §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure

if TYPE_CHECKING:
    from headscope.results.results import Results
    from headscope.studies.replicates import ReplicatedTables


class AttentionProbeStudy(Study):
    """A study of how much of a dependency tree the attention of all heads together holds."""

    name = "attention_probe"
    verb = "probe attention"
    function = "probe_attention"
    folder = "attention-probe"
    spec_class = "AttentionProbeSpec"
    work_class = "AttentionProbeWork"
    help = """Train probes that find each word's governor from the attention of all heads (Clark et al. 2019, §5, Table 3).

    headscope probe attention --out PROBE
    headscope probe attention --corpus train.conllu --dev dev.conllu --vectors glove.6B.100d.txt --out PROBE
    headscope probe attention --probes attention,right-branching --root separate --decode tree --out PROBE
    headscope probe attention --preset reference --seeds 1 --out PROBE
    headscope show PROBE attention_probe_heads --sort pull
    headscope plot PROBE table3 -o table3.pdf
    headscope plot PROBE probe_heads -o heads.pdf
    """
    corpora = ("corpus", "dev")
    annotation = "trees"
    files = ("vectors",)
    doing = "probing"
    title = "Syntax in the attention of all heads"
    about = (
        "Probes find the governor of each word from the attention of all heads to and from each candidate, with one weight per head, or "
        "with weights that depend on the two words (Clark et al. 2019, §5). Baselines: words and distances without attention, the same "
        "probes on a model with random weights, and the next word."
    )
    published = (
        "Published: Clark et al. 2019, Table 3, for BERT-base on the Penn Treebank with Stanford Dependencies. UAS excludes punctuation; "
        "their 26 for right-branching includes it, as does the column with_punct. Compare shapes, not decimals: model, treebank and its "
        "size differ."
    )
    figures = (
        StudyFigure(
            "table3",
            "Clark et al. 2019, Table 3: governors found by attention probes and by their baselines",
            "bars",
            "attention_probe",
            "probe attention",
            "Governors found",
            "Dots are means over seeds, ticks are single seeds, lines are 95 % intervals over documents. The gain over words and distances "
            "is due to attention, the gain over random weights to training.",
            choices=("structural",),
        ),
        StudyFigure(
            "probe_heads",
            "the weight of each head in an attention probe, and how far it pulls towards the governor",
            "weights",
            "attention_probe_heads",
            "probe attention --probes attention",
            "The heads that the probe uses",
            "Blue heads pull towards the governor: their attention between a word and its governor, times their weight, is higher than "
            "for the word's other pairs. The numbers are the weights themselves; a head with little attention can have a large weight.",
        ),
        StudyFigure(
            "probe_relations",
            "governors found by attention probes, relation by relation",
            "relations",
            "attention_probe_relations",
            "probe attention",
            "Relation by relation",
            "The most frequent relations, with their number of words.",
        ),
    )
    compared = (
        ComparedTable("summary", ("probe",), {"uas": BOUNDS}, "how many governors are found", drawn=True),
        ComparedTable("attention_probe_relations", ("probe", "relation"), {"uas": BOUNDS}, "how many of each relation"),
    )

    def replicates(self, results: Results) -> ReplicatedTables:
        """Replicates of the share of governors found, overall and for each relation."""
        from headscope.studies.attention_probe.tables import replicates

        return replicates(results)
