"""Cases that once failed: labels that clash with the total, labels of few documents, reports of in-sample choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.annotation import NONE, Annotated
from headscope.core.document import Document, Mention, Sentence, Word
from headscope.core.heads import HeadLayout, Site
from headscope.corpora import Corpus
from headscope.corpora.resolution.mentions import pronoun
from headscope.drawing.theme import render
from headscope.engine.spec import make_spec
from headscope.errors import MeasureError
from headscope.figures import draw
from headscope.measures import make
from headscope.report import page


def corpus(*relations: str, documents: int = 8) -> Corpus:
    """Return documents of one sentence. Its first word governs the others, which have these relations."""
    words = tuple(Word(f"w{n}", head=int(n > 0), relation=relation) for n, relation in enumerate(("root", *relations)))
    return Corpus.of([Document(f"d{number}", (Sentence(words),)) for number in range(documents)])


def relations(given: Corpus, **options: Any) -> hs.api.Run:
    return hs.run("mini", given, {"relations": {"least": 1, **options}}, replicates=20, layers=[1], gallery=0)


def test_labels_named_like_the_total_or_a_control_are_counted_separately() -> None:
    best = relations(corpus("det", "all", "~det", "a/b")).results["relations_best"]
    assert dict(zip(best["label"], best["n"], strict=True)) == {"all": 32, "all (label)": 8, "a/b": 8, "det": 8, "~det": 8}


def test_one_document_has_an_n_but_no_cross_fitted_value() -> None:
    run = relations(corpus("det", documents=1))
    row = next(iter(run.results["relations_best"].where(label="det")))
    assert row["n"] == 1
    assert np.isnan(row["value"])
    assert not np.isnan(row["in_sample"])
    assert "cannot be split" in render(draw("table1", run.results), "svg").decode()


def test_a_label_of_two_documents_has_a_cross_fitted_value() -> None:
    documents = [
        *corpus("det", documents=9),
        *(Document(f"rare {document.id}", document.sentences) for document in corpus("vocative", documents=2)),
    ]
    best = relations(Corpus.of(documents)).results["relations_best"]
    assert not np.isnan(best.where(label="vocative")["value"][0])


def test_an_in_sample_choice_is_reported_as_such(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = hs.run("mini", "sampler", {"relations": {"selection": "in-sample"}}, out, limit=30, replicates=10, gallery=0)
    assert "chosen on the documents it is scored on" in CliRunner().invoke(app, ["show", str(out)]).output
    assert "chosen on the same documents" in render(draw("table1", run.results), "svg").decode()
    assert "selection = in-sample" in page(run.results)


def test_given_maps_with_different_trees_have_different_signatures() -> None:
    maps, tokens = np.full((1, 1, 2, 2), 0.5), ["a", "b"]
    trees = [
        [Word("a", head=2, relation="x"), Word("b", head=0, relation="root")],
        [Word("a", head=0, relation="root"), Word("b", head=1, relation="x")],
    ]
    runs = [hs.measure(maps, tokens, {"relations": {"least": 1}}, words=[0, 1], annotation=tree, replicates=0) for tree in trees]
    assert runs[0].signature != runs[1].signature


def test_given_maps_without_the_required_annotation_are_refused() -> None:
    maps, tokens = np.full((1, 1, 2, 2), 0.5), ["a", "b"]
    with pytest.raises(MeasureError, match="Run it on a corpus"):
        hs.measure(maps, tokens, ["coreference"], words=[0, 1], annotation=[Word("a"), Word("b")])
    with pytest.raises(MeasureError, match="head and relation"):
        hs.measure(maps, tokens, ["relations"], words=[0, 1], annotation=[Word("a"), Word("b")])
    with pytest.raises(MeasureError, match="Give headscope Words"):
        hs.measure(maps, tokens, ["positions"], words=[0, 1], annotation=[{"form": "a"}, {"form": "b"}])


def test_a_token_that_belongs_to_no_word_is_left_out() -> None:
    tree = [Word("a", head=2, relation="x"), Word("b", head=0, relation="root")]
    run = hs.measure(np.full((1, 1, 3, 3), 1 / 3), ["a", "-", "b"], {"relations": {"least": 1}}, words=[0, None, 1], annotation=tree)
    assert list(run["relations"].table.where(label="x")["n"]) == [1, 1]


def test_one_tree_from_mixed_kinds_or_from_cross_attention_is_refused() -> None:
    layout = HeadLayout((Site("encoder", 0, 1, 1, "e"), Site("decoder", 0, 1, 1, "d"), Site("cross", 0, 1, 1, "c")))
    for heads in (("1-1", "decoder/1-1"), ("cross/1-1",)):
        with pytest.raises(MeasureError, match="one tree"):
            make("trees", {"heads": heads}).start(layout, 0)


@pytest.mark.parametrize(
    ("settings", "unit", "overlong"),
    [
        ({}, "document", "truncate"),
        ({"overlong": "window"}, "document", "window"),
        ({"unit": "document"}, "document", "truncate"),
        ({"unit": "paragraph", "overlong": "drop"}, "paragraph", "drop"),
    ],
)
def test_coreference_reads_truncated_documents_unless_settings_differ(settings: dict[str, str], unit: str, overlong: str) -> None:
    spec = make_spec({"measures": ["coreference"], **settings}).resolved(pairs=False)
    (measure,) = spec.build_measures()
    assert (measure.unit or spec.unit, measure.overlong or spec.overlong) == (unit, overlong)
    json.dumps(spec.model_dump(mode="json"))


def test_annotation_that_only_late_documents_have_is_found() -> None:
    plain = [Document(f"p{number}", (Sentence((Word("plain"),)),)) for number in range(60)]
    assert Corpus.of([*plain, *corpus("det")]).layers({"trees"}) == {"trees"}
    assert Corpus.of(plain).layers({"trees", "mentions"}) == set()


def test_duplicate_and_empty_mentions_and_invalid_heads_are_dropped() -> None:
    mentions = (Mention("a", 0, 1), Mention("a", 0, 1), Mention("b", 1, 1))
    annotation = Annotated(Document("d", (Sentence((Word("x", head=-3), Word("y", head=9))),), mentions)).select([0, 1])
    assert annotation.mentions == (Mention("a", 0, 1),)
    assert annotation.singletons == {"a"}
    assert annotation.heads == (NONE, NONE)


def test_pronouns_in_capitals_are_recognised_except_us() -> None:
    assert pronoun("SHE") == pronoun("she") is not None
    assert pronoun("US") is None
