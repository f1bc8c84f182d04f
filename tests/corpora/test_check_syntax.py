"""Each rule of level 3: a small tree that breaks it, and a similar tree that is valid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.corpora import check
from headscope.corpora.checks import RULES

# A word is form/UPOS/head/relation, then F:features, M:misc and D:deps if not empty. A bar separates sentences.
EXAMPLES: dict[str, list[tuple[str, str]]] = {
    "det-upos": [
        ("the/ADV/2/det dog/NOUN/0/root", "the/DET/2/det dog/NOUN/0/root"),
        ("a/DET/4/det/F:ExtPos=ADV lot/NOUN/1/fixed of/ADP/1/fixed dogs/NOUN/0/root", "what/PRON/2/det:poss dog/NOUN/0/root"),
    ],
    "nummod-upos": [("two/ADJ/2/nummod dogs/NOUN/0/root", "two/NUM/2/nummod dogs/NOUN/0/root")],
    "advmod-upos": [
        ("home/NOUN/2/advmod go/VERB/0/root", "home/ADV/2/advmod go/VERB/0/root"),
        ("at/ADP/3/advmod least/ADJ/3/advmod go/VERB/0/root", "at/ADP/3/advmod/F:ExtPos=ADV least/ADJ/1/fixed go/VERB/0/root"),
        ("any/PRON/2/advmod go/VERB/0/root", "any/PRON/3/advmod/F:Typo=Yes more/X/1/goeswith go/VERB/0/root"),
    ],
    "expl-upos": [("there/ADV/2/expl is/VERB/0/root", "there/PRON/2/expl is/VERB/0/root")],
    "aux-upos": [("can/VERB/2/aux:pass go/VERB/0/root", "can/AUX/2/aux:pass go/VERB/0/root")],
    "cop-upos": [("is/VERB/2/cop red/ADJ/0/root", "is/AUX/2/cop red/ADJ/0/root")],
    "case-upos": [("next/ADJ/2/case him/PRON/0/root", "including/VERB/2/case him/PRON/0/root")],
    "mark-upos": [("that/PRON/2/mark go/VERB/0/root", "that/SCONJ/2/mark go/VERB/0/root")],
    "cc-upos": [("a/NOUN/0/root plus/NOUN/3/cc b/NOUN/1/conj", "a/NOUN/0/root plus/CCONJ/3/cc b/NOUN/1/conj")],
    "punct-upos": [("go/VERB/0/root !/SYM/1/punct", "go/VERB/0/root !/PUNCT/1/punct")],
    "punct-relation": [("go/VERB/0/root !/PUNCT/1/dep", "!/PUNCT/0/root")],
    "fixed-upos": [("New/PROPN/0/root/F:ExtPos=PROPN York/PROPN/1/fixed", "New/PROPN/0/root York/PROPN/1/flat")],
    "conj-order": [("a/NOUN/2/conj b/NOUN/0/root", "a/NOUN/0/root b/NOUN/1/conj")],
    "fixed-order": [
        (
            "because/SCONJ/2/fixed of/ADP/3/case/F:ExtPos=ADP rain/NOUN/0/root",
            "because/SCONJ/3/case/F:ExtPos=ADP of/ADP/1/fixed rain/NOUN/0/root",
        )
    ],
    "flat-order": [("New/PROPN/2/flat York/PROPN/0/root", "New/PROPN/0/root York/PROPN/1/flat")],
    "goeswith-order": [("with/X/2/goeswith out/ADP/0/root/F:Typo=Yes", "with/ADP/0/root/F:Typo=Yes out/X/1/goeswith")],
    "appos-order": [("Ann/PROPN/2/appos aunt/NOUN/0/root", "aunt/NOUN/0/root Ann/PROPN/1/appos")],
    "case-children": [
        ("of/ADP/3/case the/DET/1/det dog/NOUN/0/root", "of/ADP/3/case the/DET/3/det dog/NOUN/0/root"),
        ("if/SCONJ/3/mark I/PRON/1/nsubj go/VERB/0/root", "only/ADV/2/advmod if/SCONJ/3/mark go/VERB/0/root"),
    ],
    "aux-children": [
        ("can/AUX/3/aux not/PART/1/advmod go/VERB/0/root", "can/AUX/3/aux not/PART/1/advmod/F:Polarity=Neg go/VERB/0/root"),
        ("he/PRON/2/nsubj is/AUX/3/cop red/ADJ/0/root", "can/AUX/4/aux or/CCONJ/3/cc must/AUX/1/conj go/VERB/0/root"),
    ],
    "cc-children": [
        (
            "a/NOUN/0/root and/CCONJ/4/cc then/ADV/2/advmod b/NOUN/1/conj",
            "a/NOUN/0/root as/CCONJ/4/cc/F:ExtPos=CCONJ well/ADV/2/fixed b/NOUN/1/conj",
        )
    ],
    "det-children": [("his/DET/3/det own/NOUN/1/nmod dog/NOUN/0/root", "his/DET/3/det/F:Poss=Yes own/NOUN/1/nmod dog/NOUN/0/root")],
    "clf-children": [("ge/NOUN/3/clf big/ADJ/1/amod dog/NOUN/0/root", "ge/NOUN/3/clf too/ADV/1/advmod dog/NOUN/0/root")],
    "fixed-children": [
        (
            "as/ADV/4/cc/F:ExtPos=CCONJ well/ADV/1/fixed/F:ExtPos=ADV as/ADP/2/fixed b/NOUN/0/root",
            "as/ADV/4/cc/F:ExtPos=CCONJ well/ADV/1/fixed as/ADP/1/fixed b/NOUN/0/root",
        )
    ],
    "goeswith-children": [
        ("with/ADP/0/root/F:Typo=Yes out/X/1/goeswith him/PRON/2/obl", "with/ADP/0/root/F:Typo=Yes out/X/1/goeswith him/PRON/1/obl")
    ],
    "punct-children": [
        ("go/VERB/0/root -/PUNCT/1/punct now/ADV/2/advmod", "go/VERB/0/root (/PUNCT/3/punct !/PUNCT/1/punct )/PUNCT/3/punct"),
        ("go/VERB/0/root -/PUNCT/1/punct not/ADV/2/advmod/F:Polarity=Neg", "go/VERB/0/root -/PUNCT/1/punct not/ADV/1/advmod"),
    ],
    "subjects": [
        ("he/PRON/3/nsubj it/PRON/3/nsubj:pass goes/VERB/0/root", "he/PRON/3/nsubj:outer it/PRON/3/nsubj goes/VERB/0/root"),
        ("he/PRON/3/nsubj it/PRON/3/csubj goes/VERB/0/root", "he/PRON/3/nsubj/M:Subject=Outer it/PRON/3/nsubj goes/VERB/0/root"),
    ],
    "objects": [
        ("give/VERB/0/root him/PRON/1/obj it/PRON/1/obj", "give/VERB/0/root him/PRON/1/iobj it/PRON/1/obj"),
        ("give/VERB/0/root him/PRON/1/obj it/PRON/1/obj", "tell/VERB/0/root him/PRON/1/obj go/VERB/1/ccomp"),
    ],
    "orphan-parent": [
        ("see/VERB/0/root me/PRON/1/obj you/PRON/2/orphan", "see/VERB/0/root me/PRON/1/conj you/PRON/2/orphan"),
    ],
    "obl-nominal": [
        ("see/VERB/0/root men/NOUN/1/obj here/NOUN/2/obl", "see/VERB/0/root men/NOUN/1/obj here/NOUN/2/nmod"),
        ("see/VERB/0/root men/NOUN/1/obj here/NOUN/2/obl", "men/NOUN/0/root here/NOUN/1/obl"),
    ],
    "fixed-gap": [
        (
            "due/ADP/4/case/F:ExtPos=ADP largely/ADV/4/advmod to/ADP/1/fixed rain/NOUN/0/root",
            "due/ADP/4/case/F:ExtPos=ADP -/PUNCT/1/punct to/ADP/1/fixed rain/NOUN/0/root",
        )
    ],
    "fixed-extpos": [
        ("due/ADJ/3/case to/ADP/1/fixed rain/NOUN/0/root", "due/ADJ/3/case/F:ExtPos=ADP to/ADP/1/fixed rain/NOUN/0/root"),
    ],
    "goeswith-gap": [
        (
            "with/ADP/0/root/F:Typo=Yes him/PRON/1/obl out/X/1/goeswith",
            "with/ADP/0/root/F:Typo=Yes out/X/1/goeswith him/PRON/1/obl",
        )
    ],
    "goeswith-space": [
        (
            "with/ADP/0/root/F:Typo=Yes/M:SpaceAfter=No out/X/1/goeswith",
            "with/ADP/0/root/F:Typo=Yes out/X/1/goeswith/M:SpaceAfter=No",
        )
    ],
    "goeswith-typo": [
        ("the/DET/2/det/F:Definite=Def with/ADP/0/root out/X/2/goeswith", "the/DET/2/det with/ADP/0/root out/X/2/goeswith"),
    ],
    "goeswith-columns": [
        ("with/ADP/0/root/F:Typo=Yes out/ADP/1/goeswith", "with/ADP/0/root/F:Typo=Yes out/X/1/goeswith"),
        ("with/ADP/0/root/F:Typo=Yes out/X/1/goeswith/F:Abbr=Yes", "with/ADP/0/root/F:Typo=Yes out/X/1/goeswith"),
        (
            "go/VERB/0/root/D:0:root with/ADP/1/obl/F:Typo=Yes/D:1:obl out/X/2/goeswith/D:1:obl|2:goeswith",
            "go/VERB/0/root/D:0:root with/ADP/1/obl/F:Typo=Yes/D:1:obl:x out/X/2/goeswith/D:2:goeswith",
        ),
    ],
    "flat-chain": [("a/PROPN/0/root b/PROPN/1/flat c/PROPN/2/flat", "a/PROPN/0/root b/PROPN/1/flat c/PROPN/1/flat")],
    "flat-foreign": [
        ("vis/X/0/root/F:Foreign=Yes a/ADP/1/flat:foreign", "vis/X/0/root/F:Foreign=Yes a/X/1/flat:foreign/F:Foreign=Yes"),
    ],
    "punct-nonprojective": [
        (
            "he/PRON/2/nsubj went/VERB/0/root home/ADV/2/advmod ./PUNCT/1/punct",
            "he/PRON/2/nsubj went/VERB/0/root home/ADV/2/advmod ./PUNCT/2/punct",
        )
    ],
    "punct-crossing": [
        (
            "see/VERB/0/root big/ADJ/4/amod ,/PUNCT/1/punct dogs/NOUN/1/obj",
            "see/VERB/0/root big/ADJ/4/amod ,/PUNCT/4/punct dogs/NOUN/1/obj",
        ),
        # In the valid tree `now` crosses the arc from `dogs` to `big`; the comma merely depends on `now`.
        (
            "see/VERB/0/root big/ADJ/4/amod ,/PUNCT/1/punct dogs/NOUN/1/obj",
            "see/VERB/0/root big/ADJ/5/amod now/ADV/1/advmod ,/PUNCT/3/punct dogs/NOUN/1/obj",
        ),
    ],
    "deps-copied": [
        ("go/VERB/0/root/D:0:root home/NOUN/1/obl/D:1:obl", "go/VERB/0/root/D:0:root home/NOUN/1/obl/D:1:obl:to"),
    ],
    "deps-orphan": [
        (
            "go/VERB/0/root/D:0:root me/PRON/1/conj/D:1:conj home/ADV/2/orphan/D:2:orphan ~go/VERB/_/_/D:1:conj",
            "go/VERB/0/root/D:0:root me/PRON/1/conj/D:3.1:nsubj home/ADV/2/orphan/D:3.1:advmod ~go/VERB/_/_/D:1:conj",
        ),
        (
            "go/VERB/0/root/D:0:root me/PRON/1/conj/D:1:conj home/ADV/2/orphan/D:2:orphan ~go/VERB/_/_/D:1:conj",
            "go/VERB/0/root/D:0:root me/PRON/1/conj/D:1:conj home/ADV/2/orphan/D:1:advmod|2:orphan",
        ),
    ],
    "mention-span": [
        ("dogs/NOUN/0/root/M:Entity=(1-a)(2-b)", "dogs/NOUN/0/root/M:Entity=(1-a(2-b) bark/VERB/1/acl/M:Entity=1)"),
    ],
    "mention-sentence": [
        ("dogs/NOUN/0/root/M:Entity=(1-a | bark/VERB/0/root/M:Entity=1)", "dogs/NOUN/0/root/M:Entity=(1-a) | bark/VERB/0/root"),
    ],
    "mention-head": [
        (
            "see/VERB/0/root men/NOUN/1/obj/M:Entity=(1-p here/ADV/1/advmod/M:Entity=1)",
            "see/VERB/0/root men/NOUN/1/obj/M:Entity=(1-p here/ADV/2/advmod/M:Entity=1)",
        ),
        (
            "see/VERB/0/root men/NOUN/1/obj/M:Entity=(1-p here/ADV/1/advmod/M:Entity=1)",
            "see/VERB/0/root men/NOUN/1/obj/M:Entity=(1-p ./PUNCT/1/punct/M:Entity=1)",
        ),
    ],
}


def conllu(text: str) -> str:
    """An example as the text of a CoNLL-U file."""
    sentences = []
    for number, sentence in enumerate(text.split(" | "), start=1):
        rows, written, id, node = [], "", 0, 0
        for word in sentence.split():
            form, upos, head, relation, *rest = word.split("/")
            values = {field[0]: field[2:] for field in rest}
            if form.startswith("~"):
                node += 1
            else:
                id, node = id + 1, 0
                written += form + " " * ("SpaceAfter=No" not in word)
            lemma = "_" if relation == "goeswith" else form
            columns = [f"{id}.{node}" if node else str(id), form.lstrip("~"), lemma, upos, "_", values.get("F", "_"), head, relation]
            rows.append("\t".join([*columns, values.get("D", "_"), values.get("M", "_")]))
        sentences.append("\n".join([f"# sent_id = s{number}", f"# text = {written.strip()}", *rows]))
    return "# newdoc id = d\n# global.Entity = GRP-etype\n" + "\n\n".join(sentences) + "\n\n"


@pytest.fixture
def found(tmp_path: Path) -> Callable[[str], set[str]]:
    """A function that returns the rules that an example breaks."""

    def found(text: str) -> set[str]:
        path = tmp_path / "a.conllu"
        path.write_text(conllu(text), encoding="utf-8")
        return {finding.rule for finding in check([path])}

    return found


def test_every_rule_of_level_3_has_an_example() -> None:
    assert set(EXAMPLES) == {rule.name for rule in RULES.values() if rule.level == 3}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_broken_tree_breaks_exactly_one_rule_and_a_valid_tree_none(found: Callable[[str], set[str]], rule: str) -> None:
    for broken, valid in EXAMPLES[rule]:
        assert found(broken) == {rule}, broken
        assert found(valid) == set(), valid
