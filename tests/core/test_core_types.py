"""The basic types: names of heads, layouts, states, tallies, documents and errors."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.core.document import Document, Sentence, Word
from headscope.core.heads import HeadId, HeadLayout, Site, find_head
from headscope.core.state import State
from headscope.core.tally import Tally
from headscope.errors import CorpusError, RunError


def test_names_of_heads_count_from_one_and_parse_back() -> None:
    assert str(HeadId("encoder", 7, 9)) == "8-10"
    assert str(HeadId("cross", 2, 1)) == "cross/3-2"
    for name in ("8-10", "cross/3-2", "decoder/1-1"):
        assert str(HeadId.parse(name)) == name


@pytest.mark.parametrize("name", ["0-1", "1-0", "8", "8-", "a-b", "side/1-2", "8-10-1", "08-1", "٣-١", ""])
def test_invalid_names_of_heads_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a head"):
        HeadId.parse(name)


def test_a_layout_has_consecutive_slices_for_sites_of_different_sizes() -> None:
    layout = HeadLayout((Site("encoder", 0, 3, 3, "a"), Site("encoder", 1, 2, 1, "b"), Site("cross", 0, 1, 1, "c")))
    assert layout.size == 6
    assert [layout.slice(i) for i in range(3)] == [slice(0, 3), slice(3, 5), slice(5, 6)]
    assert [str(head) for head in layout.ids()] == [
        *("encoder/1-1", "encoder/1-2", "encoder/1-3", "encoder/2-1", "encoder/2-2"),
        "cross/1-1",
    ]


def test_a_single_kind_of_attention_is_omitted_in_names_and_optional_in_lookups() -> None:
    heads = HeadLayout((Site("decoder", 0, 2, 1, "a"), Site("decoder", 1, 1, 1, "b"))).ids()
    assert [str(head) for head in heads] == ["1-1", "1-2", "2-1"]
    assert [head.key for head in heads] == ["decoder/1-1", "decoder/1-2", "decoder/2-1"]
    assert heads[1] == HeadId("decoder", 0, 1)
    assert str(find_head("1-2", heads)) == str(find_head("decoder/1-2", heads)) == "1-2"
    assert find_head("encoder/1-2", heads) is find_head("2-2", heads) is find_head("1-1", []) is None
    several = HeadLayout((Site("encoder", 0, 2, 1, "a"), Site("cross", 0, 2, 1, "b"))).ids()
    assert [str(find_head(name, several)) for name in ("1-2", "encoder/1-2", "cross/1-2")] == ["encoder/1-2", "encoder/1-2", "cross/1-2"]


def test_each_merge_rule_combines_arrays_by_its_name() -> None:
    def state(values: list[float]) -> State:
        array = np.array(values)
        return State(dict.fromkeys(("sum", "max", "min", "concat"), array), {"sum": "sum", "max": "max", "min": "min", "concat": "concat"})

    merged = state([1.0, 5.0]).merge(state([3.0, 2.0]))
    assert merged["sum"].tolist() == [4, 7]
    assert merged["max"].tolist() == [3, 5]
    assert merged["min"].tolist() == [1, 2]
    assert merged["concat"].tolist() == [1, 5, 3, 2]


def test_keyed_rows_are_summed_and_the_smallest_keys_kept_for_any_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with keys from −5 to 4 and random weights, in parts of random order: the sums of the three smallest keys are
    kept.
    """
    monkeypatch.setattr("headscope.core.state.MOST_KEYS", 3)
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(-5, 5, 60), rng.integers(1, 9, (60, 2))])
    wanted = [[key, *rows[rows[:, 0] == key, 1:].sum(0)] for key in np.unique(rows[:, 0])[:3]]
    for parts in ([60], [30, 30], [1, 7, 40, 12]):
        whole = State({"documents": np.zeros((0, 3), dtype=np.int64)}, {"documents": "keyed"})
        for part in np.split(rng.permutation(rows), np.cumsum(parts)[:-1]):
            one = State({"documents": np.zeros((0, 3), dtype=np.int64)}, {"documents": "keyed"})
            one.add("documents", part)
            whole = one.merge(whole)
        assert whole["documents"].tolist() == wanted


def test_states_with_wrong_shapes_merges_or_types_are_refused() -> None:
    a = State({"x": np.zeros(2)}, {"x": "sum"})
    with pytest.raises(RunError, match=r"shape \(2,\) here and \(3,\) there"):
        a.merge(State({"x": np.zeros(3)}, {"x": "sum"}))
    with pytest.raises(RunError, match="different measures"):
        a.merge(State({"x": np.zeros(2)}, {"x": "max"}))
    with pytest.raises(TypeError, match="float64 or int64"):
        State({"x": np.zeros(2, dtype=np.float32)}, {"x": "sum"})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="declared merge"):
        State({"x": np.zeros(2)}, {})


def test_a_tally_reports_the_first_place_of_each_count() -> None:
    tally = Tally()
    tally.add("lost", "line 3")
    tally.add("lost", "line 9", 2)
    other = Tally()
    other.add("found")
    tally.update(other)
    assert tally.lines() == ["1 found", "3 lost (first: line 3)"]


def test_documents_have_texts_words_and_paragraphs() -> None:
    words = tuple(Word(form, space_after=form != "cat") for form in ("A", "cat", "."))
    document = Document("d", (Sentence(words), Sentence(words, paragraph=1), Sentence(words, paragraph=1)))
    assert document.sentences[0].text == "A cat."
    assert len(document.words) == 9
    assert [len(group) for group in document.paragraphs()] == [1, 2]


def test_errors_state_the_place_the_fault_and_the_remedy() -> None:
    assert (
        str(CorpusError("x.conllu", 41, "head 19 of a 12-word sentence", "Correct it"))
        == "line 41 of x.conllu: head 19 of a 12-word sentence. Correct it"
    )
