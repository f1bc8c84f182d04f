from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.core.document import Mention
from headscope.corpora import check, read
from headscope.corpora.readers.brackets import Mark, Schema, parse_marks
from headscope.corpora.source import Flaw
from headscope.errors import CorpusError

Write = Callable[[str, str], Path]
GUM = Schema.parse("GRP-etype-infstat-salience-centering-minspan-link-identity")


def entities(*marks: str, declaration: str = "GRP-etype-infstat") -> str:
    """A document with one one-word sentence per string of brackets."""
    lines = [f"# newdoc id = d\n# global.Entity = {declaration}"]
    for number, mark in enumerate(marks):
        misc = f"Entity={mark}|X=Y" if mark else "_"
        lines.append(f"1 w{number} _ _ _ _ _ _ _ {misc}\n")
    return "\n".join(lines)


def test_brackets_in_the_format_of_gum_are_parsed() -> None:
    assert parse_marks("(25-event-giv:inact-nnnnn-cf3-2-coref(3-abstract-giv:act-sssss-cf2-1-coref)", GUM, 1) == [
        Mark("25", "event", True, False),
        Mark("3", "abstract", True, True),
    ]
    assert parse_marks("121)120)(8-place-new-snsss-cf1*-2,3-coref-Stratford-upon-Avon", GUM, 1) == [
        Mark("121", None, False, True),
        Mark("120", None, False, True),
        Mark("8", "place", True, False),
    ]


def test_the_declared_schema_determines_where_id_and_type_are() -> None:
    older = Schema.parse("entity-GRP-infstat-MIN-coref_type-identity")
    assert parse_marks("(person-2-new-1-ana)", older, 1) == [Mark("2", "person", True, True)]
    assert parse_marks("person-2)", older, 1) == [Mark("2", None, False, True)]
    assert parse_marks("2)", older, 1) == [Mark("2", None, False, True)]
    assert parse_marks("(e7-x)", Schema.parse("eid-head"), 1) == [Mark("e7", None, True, True)]


@pytest.mark.parametrize("value", ["", "3", "(", "()", "((3)", "3))", "(3)4"])
def test_a_malformed_bracket_is_refused(value: str) -> None:
    with pytest.raises(Flaw, match="cannot be read"):
        parse_marks(value, GUM, 1)


def test_nested_crossing_and_repeated_mentions_are_read(columns: Write) -> None:
    text = entities("(1-person-new(2-place", "(3-event", "2)(1-person", "3)1)(4-x-y)", "1)")
    (document,) = read(columns("a.conllu", text))
    # The second mention of entity 1 lies inside the first and closes before it.
    assert document.mentions == (
        Mention("2", 0, 3, "place"),
        Mention("1", 0, 5, "person"),
        Mention("3", 1, 4, "event"),
        Mention("1", 2, 4, "person"),
        Mention("4", 3, 4, "x"),
    )


def test_discontinuous_mentions_are_skipped_and_counted(columns: Write) -> None:
    corpus = read(columns("a.conllu", entities("(e12[1/2]-person", "e12[1/2])", "(e12[2/2]-person)", "(e12-person)")))
    (document,) = corpus
    assert document.mentions == (Mention("e12", 3, 4, "person"),)
    assert corpus.skipped.counts == {"parts of discontinuous mentions skipped": 2}


def test_brackets_on_empty_nodes_span_the_neighbouring_words(columns: Write) -> None:
    text = """
    # newdoc id = d
    # global.Entity = GRP-etype
    0.1 _ _ _ _ _ _ _ _ Entity=(1-zero)(2-a
    1   w _ _ _ _ _ _ _ _
    2   x _ _ _ _ _ _ _ Entity=(3-b
    2.1 _ _ _ _ _ _ _ _ Entity=2)3)
    3   y _ _ _ _ _ _ _ _
    """
    corpus = read(columns("a.conllu", text))
    (document,) = corpus
    assert document.mentions == (Mention("2", 0, 2, "a"), Mention("3", 1, 2, "b"))
    assert corpus.skipped.counts["mentions skipped: they contain only empty nodes"] == 1


def test_at_most_100_mentions_may_be_open(columns: Write) -> None:
    def nested(depth: int) -> str:
        return entities("".join(f"({number}-x" for number in range(depth)), "".join(f"{number})" for number in reversed(range(depth))))

    (document,) = read(columns("a.conllu", nested(100)))
    assert len(document.mentions) == 100
    path = columns("b.conllu", nested(102))
    problem = r"line 3 of .*: the coreference bracket of entity '100' opens while 100 mentions are open\. Balance the brackets"
    with pytest.raises(CorpusError, match=problem):
        list(read(path))
    corpus = read(path, on_error="skip")
    (document,) = corpus
    assert len(document.mentions) == 100
    assert corpus.skipped.counts == {
        "coreference brackets skipped: too many open": 2,
        "coreference brackets skipped: closed but never opened": 2,
    }


def test_a_finding_names_at_most_five_crossing_mentions(columns: Write) -> None:
    path = columns("a.conllu", entities("".join(f"({number}-x" for number in range(9)), "".join(f"{number})" for number in range(9))))
    found = [finding.problem for finding in check([path]) if finding.rule == "entity-crossing"]
    assert len(found) == 8
    others = ", ".join(f"'{number}' of line 3" for number in range(1, 6))
    assert found[0] == f"entity '0' of line 3 closes before {others} and 3 more"
    assert found[-1] == "entity '7' of line 3 closes before '8' of line 3"
