"""Published numbers that are shown beside ours, for orientation: of other data and mostly of other models."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.figures.contests import KINDS, PUBLISHED


@dataclass(frozen=True)
class ByLayer:
    """Layer means of a figure, as read off it by eye."""

    source: str
    rows: dict[str, tuple[float, ...]]


_FIGURES = "Clark et al. 2019, bert-base-uncased on 1,000 pairs of Wikipedia paragraphs, read off the figure by eye (± 0.03)"
LAYERS = {
    "clark2": ByLayer(
        _FIGURES,
        {
            "to_sep": (0.02, 0.05, 0.07, 0.21, 0.49, 0.55, 0.53, 0.57, 0.58, 0.48, 0.07, 0.07),
            "to_punct": (0.05, 0.11, 0.09, 0.08, 0.05, 0.04, 0.04, 0.05, 0.05, 0.07, 0.50, 0.57),
            "other_to_sep": (0.03, 0.05, 0.08, 0.20, 0.48, 0.54, 0.52, 0.56, 0.57, 0.47, 0.07, 0.07),
            "sep_to_sep": (0.15, 0.13, 0.11, 0.50, 0.88, 0.90, 0.89, 0.90, 0.88, 0.37, 0.07, 0.10),
        },
    ),
    "clark4": ByLayer(
        _FIGURES,
        {
            "entropy": (3.6, 2.85, 2.55, 2.75, 2.45, 1.9, 1.95, 1.75, 2.2, 2.5, 2.8, 2.85),
            "entropy_cls": (3.65, 3.6, 2.1, 2.75, 2.45, 2.35, 2.65, 2.05, 2.2, 2.85, 3.5, 3.89),
        },
    ),
}

# The best head, its accuracy and the best offset's in per cent, in-sample, by the labels of Stanford Dependencies: the
# authors' notebook, which has more relations than the paper's Table 1 and agrees with it except for `all` (34.5, 26.3
# in print) and a misprinted `auxpass`.
TABLE1_SOURCE = (
    "Clark et al. 2019, Table 1 and its notebook: bert-base-uncased on the Penn Treebank, Stanford Dependencies, in-sample; `all` there "
    "counts punctuation and roots"
)
_ROWS = """
all 7-6 34.7 26.7; prep 7-4 66.7 61.8; pobj 9-6 76.3 34.6; det 8-11 94.3 51.7; nn 4-10 70.4 70.2; nsubj 8-2 58.5 45.5; amod 4-10
75.6 68.3; dobj 8-10 86.8 40.0; advmod 7-6 48.8 40.2; aux 4-10 81.1 71.5; num 8-11 67.4 56.4; cc 7-5 47.8 41.2; conj 7-1 53.3
26.8; poss 7-6 80.5 47.7; dep 11-11 18.3 15.9; ccomp 8-1 48.8 12.4; number 7-4 74.8 73.2; xcomp 5-7 57.3 47.1; possessive 7-12
98.8 98.8; mark 8-2 50.7 14.5; cop 7-6 72.2 40.5; auxpass 4-10 94.1 82.5; rcmod 9-11 40.9 26.6; advcl 5-4 29.5 4.6; appos 7-1 30.5
28.3; nsubjpass 7-6 57.5 43.7; tmod 8-6 45.7 29.2; partmod 8-5 59.3 56.5; pcomp 6-10 79.7 79.2; quantmod 1-4 68.0 60.6; npadvmod
2-6 44.6 34.9; neg 4-10 72.5 68.3; prt 6-7 99.1 91.4
"""
TABLE1 = {label: (head, float(accuracy), float(offset)) for label, head, accuracy, offset in (row.split() for row in _ROWS.split(";"))}
# Universal Dependencies' nearest counterparts. Prepositions are attached differently, so prep, pobj, case, obl and nmod
# have none.
_COUNTERPARTS = {
    **{"obj": "dobj", "nsubj:pass": "nsubjpass", "aux:pass": "auxpass", "nmod:poss": "poss", "compound": "nn"},
    **{"nummod": "num", "acl:relcl": "rcmod", "compound:prt": "prt"},
}


def table1(label: str) -> tuple[str, float, float] | None:
    """The paper's row for a relation, or for its counterpart; None if it has none."""
    return TABLE1.get(label) or TABLE1.get(_COUNTERPARTS.get(label, ""))


# Rules and heads on each kind of mention, in percent.
RULES: dict[str, tuple[str, dict[str, dict[str, int]]]] = {
    "coreference": (
        "Clark et al. 2019, Table 2: bert-base-uncased on CoNLL-2012, in-sample. Published, not measured here",
        {{"one head": "head 5-4"}.get(system, system): dict(zip(KINDS, values, strict=True)) for system, values in PUBLISHED.items()},
    ),
}

# Heads with each marker in the paper's Figure 6.
BEHAVIOURS_SOURCE = "Clark et al. 2019, Figure 6, the 144 heads of bert-base-uncased, counted by eye"
BEHAVIOURS = {"broad": "≈ 11", "next": "3", "previous": "4", "[CLS]": "1", "[SEP]": "≈ 20", "punctuation": "≈ 13"}
