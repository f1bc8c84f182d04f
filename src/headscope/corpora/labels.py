"""The label inventories of Universal Dependencies v2: https://universaldependencies.org/u/overview/syntax.html."""

from __future__ import annotations

# fmt: off
UPOS = frozenset(
    {
        "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT",
        "SCONJ", "SYM", "VERB", "X",
    }
)
RELATIONS = frozenset(
    {
        "acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj",
        "cop", "csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj",
        "list", "mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum",
        "root", "vocative", "xcomp",
    }
)
# fmt: on
