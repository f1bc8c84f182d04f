"""What a reader must know about the choice of best heads: on which documents they were chosen, and what their
intervals cover.
"""

from __future__ import annotations

from headscope.results.results import Results


def choice_note(results: Results, measure: str) -> str:
    """How the best heads of a measure were chosen, what their intervals are for, and in which direction their scores
    are biased.
    """
    options = results.measures[measure]
    if options.get("selection") != "crossfit":
        return (
            "Heads and rules are chosen on the documents they are scored on (selection = in-sample): the best of many is biased high, most "
            "for rare labels, and intervals, which hold the choice fixed, do not show it."
        )
    folds = options.get("folds", 2)
    parts = (
        "Each half of the documents scores the head, and the rule, that were best on the other half; two heads are named where the halves "
        "choose differently."
        if folds == 2
        else f"Each of {folds} parts of the documents scores the head, and the rule, that were best on all other parts; where parts choose "
        "differently the heads are named by how many chose them."
    )
    more = " More folds (--folds 5) lower this bias, and make intervals of rare labels too narrow." if folds == 2 else ""
    return (
        f"{parts} The interval is for the heads chosen, not for the best head there is: the choice is held fixed. For rare labels the "
        f"score is biased low, since few cases often choose a head that is not the best.{more}"
    )
