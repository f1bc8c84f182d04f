"""The validator on released treebanks. Its findings there are known; docs/checking.md explains them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headscope.corpora import check

FOUND: dict[str, dict[str, int]] = {
    "en_ewt-ud-dev": {},
    "en_gum-ud-dev": {"mention-head": 68, "obl-nominal": 4},
    "en_gum-r2.5-ud-dev": {"fixed-extpos": 35, "subjects": 11, "goeswith-typo": 5, "goeswith-columns": 5, "objects": 3},
    "de_gsd-ud-dev": {"newdoc-missing": 1, "obl-nominal": 2},
    "fi_tdt-ud-dev": {"newdoc-missing": 1, "fixed-extpos": 37, "objects": 1},
    "ja_gsd-ud-dev": {"fixed-extpos": 451},
}


@pytest.mark.parametrize("name", FOUND)
def test_the_findings_in_released_treebanks_are_the_known_ones(data: Path, name: str) -> None:
    findings = check([data / f"ud/{name}.conllu.xz"])
    assert Counter(finding.rule for finding in findings) == FOUND[name]
    if name in ("en_ewt-ud-dev", "en_gum-ud-dev", "de_gsd-ud-dev", "ja_gsd-ud-dev"):
        assert all(finding.note for finding in findings)


def test_gum_mentions_with_several_heads_are_found(data: Path) -> None:
    heads = {finding.line: finding.problem for finding in check([data / "ud/en_gum-ud-dev.conllu.xz"]) if finding.rule == "mention-head"}
    assert len([problem for problem in heads.values() if problem.startswith("3 words")]) == 4
    assert heads[7181] == "2 words of 'any sharp objects on you' depend on words outside: 'objects' (NOUN, obj) and 'you' (PRON, obl)"
    # In the tree `public` modifies `services`, the next word: a mention inside a compound may lack a single head.
    assert heads[37489] == (
        "2 words of 'public transportation' depend on words outside: 'public' (ADJ, amod) and 'transportation' (NOUN, compound)"
    )


def test_obliques_of_nominals_in_gum_are_found(data: Path) -> None:
    findings = check([data / "ud/en_gum-ud-dev.conllu.xz"], ignore=["mention-head"])
    assert [(finding.line, finding.sentence_id) for finding in findings] == [
        (11928, "GUM_court_negligence-21"),
        (22276, "GUM_letter_wiki-10"),
        (24177, "GUM_news_homeopathic-22"),
        (31646, "GUM_speech_inauguration-38"),
    ]
