"""Coreference on real corpora: baselines against a plain computation, head words against another annotation of the same
texts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.core.annotation import NONE, Annotated, Annotation
from headscope.core.document import Document
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.corpora.resolution.head_words import HeadWords
from headscope.encoding.texts import Encoder

GUM = "ud/en_gum-ud-dev.conllu.xz"
ONTOGUM = "coref/ontogum-dev.v4_gold_conll.xz"
DOCUMENTS: dict[str, Any] = {"gallery": 0, "unit": "document", "overlong": "truncate", "max_length": 128}


def rules(run: hs.api.Run, measure: str, label: str = "all") -> dict[str, float]:
    table = run.results[f"{measure}_rules"].where(label=label)
    return dict(zip(table["rule"], table["value"], strict=True))


def plain_baselines(text: Annotation) -> list[tuple[bool, bool]]:
    """For each mention of a text with an antecedent, return whether the nearest mention is an antecedent, and whether
    the nearest mention with the same head word is one.
    """
    heads = {}
    for mention in text.mentions:
        span = range(mention.start, mention.end)
        outward = [i for i in span if text.heads[i] not in span and (text.heads[i] != NONE or text.words[i].head is not None)]
        nominal = [i for i in outward if text.words[i].upos in ("NOUN", "PROPN", "PRON", "NUM")]
        heads[mention] = (nominal or outward)[0]
    mentions = [mention for mention in text.mentions if mention.entity not in text.singletons]
    found = []
    for mention in mentions:
        own = heads[mention]
        before = [one for one in mentions if (one.start, one.end) < (mention.start, mention.end) and heads[one] != own]
        answers = {heads[one] for one in before if one.entity == mention.entity}
        if answers:
            by_distance = sorted(before, key=lambda one: (abs(heads[one] - own), -one.start))
            same = [one for one in by_distance if text.words[heads[one]].form.lower() == text.words[own].form.lower()]
            found.append((heads[by_distance[0]] in answers, bool(same) and heads[same[0]] in answers))
    return found


def test_baselines_on_gum_equal_a_plain_computation(data: Path) -> None:
    model = hs.load("mini")
    run = hs.run(model, data / GUM, "coreference", layers=(1,), **DOCUMENTS)
    encoder = Encoder(model.tokenizer, unit="document", overlong="truncate", max_length=128)
    found = [pair for text in encoder.texts(read(data / GUM), Tally()) for pair in plain_baselines(text.annotation)]
    table = run.results["coreference_rules"].where(label="all")
    assert table["n"] == [len(found)] * 3
    values = rules(run, "coreference")
    assert values["nearest"] == sum(nearest for nearest, _ in found) / len(found)
    assert values["head_match"] == sum(match for _, match in found) / len(found)


@pytest.mark.parametrize(("name", "source"), [(GUM, "dependencies"), (ONTOGUM, "constituents")])
def test_baselines_have_the_order_and_size_of_those_in_the_paper(data: Path, name: str, source: str) -> None:
    """The paper has 27, 52 and 69 per cent on CoNLL-2012. Other texts have the same order."""
    run = hs.run("mini", data / name, "coreference", layers=(1,), **DOCUMENTS)
    values = rules(run, "coreference")
    assert 0.25 < values["nearest"] < values["head_match"] < 0.6 < values["sieves"] < 0.85
    counts = {row["what"]: row["n"] for row in run.results["coreference_counts"]}
    assert counts["texts"] == 30
    assert counts[f"head words by {source}"] == counts["mentions"] - counts["mentions of singletons left out"]
    scored = counts["first mentions"] + counts["mentions with the head word of all their antecedents"] + counts["mentions scored"]
    assert scored == counts["mentions"] - counts["mentions of singletons left out"]


def test_head_words_by_constituents_agree_with_dependencies(data: Path) -> None:
    """OntoGUM and GUM annotate the same texts. The head of a name is its first word in UD and its last in Collins'
    rules.
    """
    gum = {document.id: document for document in read(data / GUM)}
    agree, total = 0, 0
    for document in read(data / ONTOGUM):
        twin = Document("twin", gum[document.id.removesuffix("/000")].sentences, document.mentions)
        texts = [Annotated(one).select(range(len(one.words))) for one in (document, twin)]
        assert [word.form for word in texts[0].words] == [word.form for word in texts[1].words]
        trees, dependencies = (HeadWords(text) for text in texts)
        for mention in texts[0].mentions:
            one, other = trees.of(mention), dependencies.of(mention)
            assert (one.source, other.source) == ("constituents", "dependencies")
            flat = (texts[1].words[one.head].relation or "").startswith("flat")
            agree += one.head == other.head or flat
            total += 1
    assert total == 3818
    assert agree / total > 0.98


def test_pronouns_of_winobias_and_gap_are_scored_and_counted(data: Path) -> None:
    """All pronouns of WinoBias can be scored, and the order of the occupations does not predict the antecedent. In GAP,
    pronouns that refer to neither name are counted.
    """
    wino = hs.run("mini", data / "coref/winobias-dev-type1-pro.v4_auto_conll.xz", "pronouns", format="winobias", layers=(1,), **DOCUMENTS)
    counts = {row["what"]: row["n"] for row in wino.results["pronouns_counts"]}
    assert counts["texts"] == 396
    assert counts["third-person pronouns"] == counts["pronouns scored"] == 405
    assert {"all", "pro", "feminine", "masculine"} == set(wino.results["pronouns_rules"]["label"])
    assert 0.45 < rules(wino, "pronouns")["first"] < 0.55
    gap = hs.run("mini", data / "coref/gap-development.tsv.xz", "pronouns", layers=(1,), limit=100, **DOCUMENTS)
    counts = {row["what"]: row["n"] for row in gap.results["pronouns_counts"]}
    left_out = counts["pronouns with fewer than two candidates"] + counts["pronouns that refer to no candidate"]
    assert counts["third-person pronouns"] == left_out + counts["pronouns scored"] <= 100
    assert counts["pronouns scored"] > 75
