"""Quantities (docs/quantities.md) and findings of studies in plain words: for the terminal, notebooks and pages."""

from __future__ import annotations

from collections.abc import Sequence

from headscope.core.maps import map_sentence
from headscope.corpora.automatic import sentence
from headscope.results.notes import generated_sentence
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.studies.registry import REGISTRY

QUANTITIES = {
    "previous": "to the previous token",
    "next": "to the next token",
    "self": "to the token itself",
    "to_cls": "to the opening token, [CLS]",
    "to_sep": "to the closing or separating tokens, [SEP]",
    "to_punct": "to periods and commas",
    "to_first": "to the first token, from all tokens after it",
    "sink_first": "share of long texts in whose first tokens the first token receives more than the threshold",
    "alpha": "largest mean weight that a token of a text receives from the tokens that see it",
    "at_first": "share of texts whose sink is the first token",
    "at_sep": "share of texts whose sink is [SEP]",
    "at_punct": "share of texts whose sink is a period or a comma",
    "at_other": "share of texts whose sink is another token",
    "induction": "to the token after an earlier copy of the token",
    "duplicate": "to earlier copies of the token",
    "previous_token": "to the previous token, from the third token on",
    "induction_shuffled": "as induction, with the copies of a text whose words were shuffled",
    "duplicate_shuffled": "as duplicate, with the copies of a text whose words were shuffled",
    "name_induction": "from a rare name to the token after an earlier copy of it",
    "name_copy": "from the token before a repeated rare name to earlier copies of the name",
    "name_induction_shuffled": "as name_induction, with the copies of a text whose words were shuffled",
    "name_copy_shuffled": "as name_copy, with the copies of a text whose words were shuffled",
    "value_norm": "size of the value vector of the token that receives most, relative to the mean over the text",
    "qr": "from the question to the passage that answers it",
    "qr_other": "from the question to another passage of the same length",
    "entropy_without_first": "entropy of the rows without the first token",
    "sep_to_sep": "from [SEP] to [SEP]",
    "other_to_sep": "from all other tokens to [SEP]",
    "entropy": "entropy of the rows: low is focused, high is broad",
    "entropy_cls": "entropy of the [CLS] row",
    "max_weight": "largest weight of a row",
    "sink_mass": "weight that goes to no token",
    "nearest": "distance to the most similar head: high for a unique head",
    "own_layer": "mean distance to the other heads of its layer",
    "other_layers": "mean distance to the heads of other layers",
    "relative": "to a word of a keyphrase, more than to another word",
    "to_keywords": "to a word of a keyphrase",
    "to_others": "to a word of no keyphrase",
    "auc": "probability that a word of a keyphrase receives more than another word (AUC)",
    "uuas": "share of annotated edges, ignoring directions, in the maximum spanning tree of the head",
}
# Quantities that are not between 0 and 1.
UNBOUNDED = frozenset({"entropy", "entropy_cls", "entropy_without_first", "nearest", "own_layer", "other_layers", "relative"})
GRADIENTS = "saliency"  # its quantities have the names of those of attention, but are sizes of gradients

# The shares of heads as classifiers in words, by direction. A word never picks itself or a special token.
_SHARES = {
    "dep-to-head": "share of {label}words whose most attended word, apart from special tokens and the word itself, is their governor",
    "head-to-dep": "share of {label}words that their governor attends to more than any other word does",
    "mention-to-antecedent": "share of {label}mentions whose most attended earlier mention is an antecedent",
    "antecedent-to-mention": "share of {label}mentions to which, of the mentions before, an antecedent attends most",
    "pronoun-to-candidate": "share of {label}pronouns whose most attended candidate is the right one",
    "candidate-to-pronoun": "share of {label}pronouns to which the right candidate attends most",
}


def about(label: str, direction: str = "", measure: str = "") -> str:
    """A phrase that describes a quantity, given by a label and a direction, or by its name."""
    if measure == GRADIENTS:
        return f"how much the loss changes with attention {QUANTITIES.get(label, 'to all other tokens')}"
    if direction:
        return _SHARES.get(direction, "").format(label="" if label == "all" else f"{label} ")
    if label.startswith("offset_"):
        places = int(label.removeprefix("offset_"))
        return f"to the token {abs(places)} places {'before' if places < 0 else 'after'}"
    return QUANTITIES.get(label, "")


def findings(results: Results) -> list[str]:
    """The findings of a study as sentences, after those that name the origin of annotation, maps and text."""
    if "findings" in results.manifest:  # written when the study was made
        return list(results.manifest["findings"])
    return [*whose(results), *REGISTRY[results.study or ""].findings(results)]


def whose(results: Results) -> list[str]:
    """Sentences on the origin of the data: the parser, if one made the annotation; the maps, if they are not attention
    weights; and the model, if it generated the text.
    """
    annotated = None if results.annotation is None else sentence(results.annotation)
    sentences = (annotated, map_sentence(results.map), generated_sentence(results.manifest))
    return [line for line in sentences if line is not None]


def shown_columns(summary: Table) -> list[str]:
    """The columns of a study's summary that have a value in any row."""
    return [name for name in summary.columns if any(value is not None for value in summary[name])]


def has_published(columns: Sequence[str]) -> bool:
    """Whether published numbers are among these columns of a summary."""
    return any(name.startswith("published") for name in columns)
