"""Numbers that papers printed, to stand beside ours: for orientation, on other data and mostly on other models."""

from __future__ import annotations

from dataclasses import dataclass


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
            "sep_to_sep": (0.15, 0.13, 0.11, 0.50, 0.88, 0.90, 0.89, 0.90, 0.88, 0.37, 0.07, 0.10),
        },
    ),
    "clark4": ByLayer(_FIGURES, {"entropy": (3.6, 2.85, 2.55, 2.75, 2.45, 1.9, 1.95, 1.75, 2.2, 2.5, 2.8, 2.85)}),
}

# Table 1: the best head, its accuracy and the best offset's in per cent, in-sample, by the labels of Stanford Dependencies.
# Numbers as the authors' notebook printed them.
TABLE1_SOURCE = "Clark et al. 2019, Table 1: bert-base-uncased on the Penn Treebank, Stanford Dependencies, in-sample"
TABLE1: dict[str, tuple[str, int, int]] = {
    **{"all": ("7-6", 35, 27), "prep": ("7-4", 67, 62), "pobj": ("9-6", 76, 35), "det": ("8-11", 94, 52), "nn": ("4-10", 70, 70)},
    **{"nsubj": ("8-2", 58, 46), "amod": ("4-10", 76, 68), "dobj": ("8-10", 87, 40), "advmod": ("7-6", 49, 40), "aux": ("4-10", 81, 72)},
    **{"num": ("8-11", 67, 56), "cc": ("7-5", 48, 41), "conj": ("7-1", 53, 27), "poss": ("7-6", 80, 48), "ccomp": ("8-1", 49, 12)},
    **{"xcomp": ("5-7", 57, 47), "mark": ("8-2", 51, 14), "cop": ("7-6", 72, 40), "auxpass": ("4-10", 94, 82), "rcmod": ("9-11", 41, 27)},
    **{"advcl": ("5-4", 30, 5), "appos": ("7-1", 30, 28), "nsubjpass": ("7-6", 58, 44), "neg": ("4-10", 72, 68), "prt": ("6-7", 99, 91)},
}
# Universal Dependencies' nearest counterparts. Where a preposition hangs differs, so prep, pobj, case, obl and nmod have none.
_COUNTERPARTS = {
    **{"obj": "dobj", "nsubj:pass": "nsubjpass", "aux:pass": "auxpass", "nmod:poss": "poss", "compound": "nn"},
    **{"nummod": "num", "acl:relcl": "rcmod", "compound:prt": "prt"},
}


def table1(label: str) -> tuple[str, int, int] | None:
    """The paper's row for a relation: its own, or that of its counterpart."""
    return TABLE1.get(label) or TABLE1.get(_COUNTERPARTS.get(label, ""))


# Rules and heads on each kind of mention, in per cent.
RULES: dict[str, tuple[str, dict[str, dict[str, int]]]] = {
    "coreference": (
        "Clark et al. 2019, Table 2: bert-base-uncased on CoNLL-2012, in-sample. Published, not measured here",
        {
            "nearest": {"all": 27, "pronoun": 29, "proper": 29, "nominal": 19},
            "head_match": {"all": 52, "pronoun": 47, "proper": 67, "nominal": 40},
            "sieves": {"all": 69, "pronoun": 70, "proper": 77, "nominal": 60},
            "head 5-4": {"all": 65, "pronoun": 64, "proper": 73, "nominal": 58},
        },
    ),
}
