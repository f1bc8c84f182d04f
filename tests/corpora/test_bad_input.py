from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.core.document import Mention
from headscope.corpora import read
from headscope.errors import CorpusError

Write = Callable[[str, str], Path]
GOOD = "# newdoc id = d\n1 a _ _ _ _ 0 root _ _\n\n"

CONLLU = {
    "1 a _ _ _ _ 2 det _ _\n2 b _ _ _ _ 19 dep _ _": (5, "head 19 in a sentence of 2 words", "head outside the sentence"),
    "1 a _ _ _ _ 2 det _ _\n2 b _ _ _ _ 1 dep _ _": (4, "word 1 -> 2 -> 1: the heads form a cycle", "cycle"),
    "1 a _ _ _ _ 0 root _ _\n2 b _ _ _ _ 2 dep _ _": (5, "word 2 -> 2: the heads form a cycle", "cycle"),
    "1 a _ _ _ _ x det _ _": (4, "head 'x' is not the number of a word", "head is not a number"),
    "1 a _ _ _ _ -1 det _ _": (4, "head '-1' is not the number of a word", "head is not a number"),
    "x a _ _ _ _ 0 root _ _": (4, "id 'x' where word 1 is expected", "bad id"),
    "2 a _ _ _ _ 0 root _ _": (4, "id '2' where word 1 is expected", "bad id"),
    "1 a _ _ _ _ _ _ _ _\n3 a _ _ _ _ _ _ _ _": (5, "id '3' where word 2 is expected", "bad id"),
    "1 a _ _ _ _ _ _ _ _\n1 a _ _ _ _ _ _ _ _": (5, "id '1' where word 2 is expected", "bad id"),
    "2-3 ab _ _ _ _ _ _ _ _\n1 a _ _ _ _ _ _ _ _": (4, "id '2-3' after word 0", "bad id"),
    "1-3 ab _ _ _ _ _ _ _ _\n1 a _ _ _ _ _ _ _ _": (4, "a multi-word token up to word 3 in a sentence of 1 words", "bad id"),
    "1 a _ _ _ _ _ _ _ _\n7.1 b _ _ _ _ _ _ _ _": (5, "id '7.1' after word 1", "bad id"),
    "1 a _ _ _ _ 0 root _": (4, "9 columns where 10 are needed in '1\\ta", "wrong number of columns"),
    "A line of text": (4, "4 columns where 10 are needed in 'A\\tline", "wrong number of columns"),
    "1.1 a _ _ _ _ _ _ _ _": (4, "id '1.1' after word 0", "bad id"),
    "0.1 a _ _ _ _ _ _ _ _": (4, "a sentence without words", "no words"),
}


@pytest.mark.parametrize("name", ["a.conllu", "a.conll"])
@pytest.mark.parametrize("bad", CONLLU)
def test_a_faulty_conllu_sentence_is_refused_or_skipped(columns: Write, name: str, bad: str) -> None:
    line, problem, kind = CONLLU[bad]
    path = columns(name, GOOD + bad + "\n\n1 z _ _ _ _ 0 root _ _")
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"line {line} of {path}: {problem}")
    assert caught.value.remedy.endswith(", or pass --on-error skip to skip such sentences")
    corpus = read(path, on_error="skip")
    (document,) = corpus
    assert [word.form for word in document.words] == ["a", "z"]
    assert corpus.skipped.lines() == [f"1 sentences skipped: {kind} (first: line {line} of {name})"]


def test_an_empty_form_is_refused_or_skipped(write: Write) -> None:
    path = write("a.conllu", "# newdoc id = d\n1\t \t_\t_\t_\t_\t_\t_\t_\t_\n")
    with pytest.raises(CorpusError, match=r"line 2 of .*a\.conllu: word 1 has an empty form ' '\. Write the word"):
        list(read(path))
    corpus = read(path, on_error="skip")
    assert list(corpus) == []
    assert corpus.skipped.lines() == [
        "1 documents skipped: none of their sentences is left (first: d)",
        "1 sentences skipped: empty form (first: line 2 of a.conllu)",
    ]


@pytest.mark.parametrize(
    ("marks", "line", "problem", "kind"),
    [
        (("(1-x", "_", "_"), 2, "entity '1' is still open at the end of the document", "opened but never closed"),
        (("_", "1)", "_"), 4, "entity '1' is closed but was not opened", "closed but never opened"),
        (("_", "_", "1-x"), 6, "coreference bracket '1-x' cannot be read", "malformed bracket"),
    ],
)
def test_a_faulty_bracket_is_skipped_but_its_sentence_is_kept(
    columns: Write, marks: tuple[str, ...], line: int, problem: str, kind: str
) -> None:
    rows = "\n\n".join(f"1 w _ _ _ _ _ _ _ Entity=(9-ok){mark.strip('_')}" for mark in marks)
    rows = rows.replace("(9-ok)1-x", "1-x")
    path = columns("a.conllu", f"# newdoc id = d\n{rows}")
    with pytest.raises(CorpusError, match=rf"^line {line} of .*a\.conllu: .*{problem}.*skip such coreference brackets$"):
        list(read(path))
    corpus = read(path, on_error="skip")
    (document,) = corpus
    assert len(document.sentences) == 3
    assert len(document.mentions) == 3 - ("cannot" in problem)
    assert corpus.skipped.counts == {f"coreference brackets skipped: {kind}": 1}


def test_mentions_that_touch_a_skipped_sentence_are_skipped(columns: Write) -> None:
    path = columns(
        "a.conllu",
        """
        # newdoc id = d
        1 a _ _ _ _ _ _ _ Entity=(1-x)(2-x
        2 b _ _ _ _ _ _ _ Entity=(3-x(7-x

        1 c _ _ _ _ 5 _ _ Entity=2)(4-x)(5-x
        2 broken Entity=7)

        1 d _ _ _ _ _ _ _ Entity=3)5)(6-x)
        """,
    )
    corpus = read(path, on_error="skip")
    (document,) = corpus
    assert document.mentions == (Mention("1", 0, 1, "x"), Mention("6", 2, 3, "x"))
    # 2 ends in the skipped sentence, 3 spans it, 4 lies in it, 5 begins in it, and the end of 7 cannot be read.
    assert corpus.skipped.counts == {
        "sentences skipped: wrong number of columns": 1,
        "mentions skipped: they touch a skipped sentence": 5,
    }


CONLL2012 = {
    "d 0 0 a NN * - - - - *": (5, "11 columns where at least 12 are needed in 'd\\t0", "wrong number of columns"),
    "d 0 1 a NN * - - - - * -": (5, "id '1' where word 0 is expected", "bad id"),
    "d 0 x a NN * - - - - * -": (5, "id 'x' where word 0 is expected", "bad id"),
}


@pytest.mark.parametrize("bad", CONLL2012)
def test_a_faulty_conll2012_sentence_is_refused_or_skipped(columns: Write, bad: str) -> None:
    line, problem, kind = CONLL2012[bad]
    row = "d 0 0 a NN * - - - - * "
    path = columns("a.v4_gold_conll", f"#begin document (d); part 000\n# x\n{row}(1)|(2\n\n{bad}\n\n{row}(1)|2)\n#end document")
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"line {line} of {path}: {problem}")
    corpus = read(path, on_error="skip")
    (document,) = corpus
    assert document.mentions == (Mention("1", 0, 1), Mention("1", 1, 2))
    assert corpus.skipped.counts == {f"sentences skipped: {kind}": 1, "mentions skipped: they touch a skipped sentence": 1}


def test_conll2012_words_outside_documents_and_unbalanced_chains_are_refused(columns: Write) -> None:
    row = "d 0 0 a NN * - - - - * "
    outside = columns("a_conll", f"{row}-\n\n#begin document (d); part 000\n{row}-\n#end document")
    with pytest.raises(CorpusError, match=r"line 1 of .*a_conll: words outside a document\. Add a line #begin document"):
        list(read(outside))
    assert [document.id for document in read(outside, on_error="skip")] == ["d/000"]
    for mark, problem in {"(3": "entity '3' is still open", "3)": "entity '3' is closed", "(3)|4": "bracket '4' cannot be read"}.items():
        path = columns("b_conll", f"#begin document (d); part 000\n{row}{mark}\n#end document")
        with pytest.raises(CorpusError, match=rf"line 2 of .*b_conll: .*{problem}"):
            list(read(path))
        assert len(list(read(path, on_error="skip"))) == 1


def test_invalid_utf8_is_refused_or_the_affected_part_skipped(tmp_path: Path) -> None:
    row = b"1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n"
    cases = {
        "a.conllu": (
            b"# newdoc id = d\n" + row + b"\n" + row.replace(b"a", b"\xe4") + b"\n# newdoc id = \xe4\n" + row + b"\n" + row,
            4,
            2,
            2,
        ),
        "b.txt": (b"one\n\ntw\xf6\n\nthree", 3, 1, 1),
        "c.jsonl": (b'{"text": "a"}\n{"text": "\xe4"}\n', 2, 1, 1),
    }
    for name, (content, line, documents, lost) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(CorpusError, match=rf"line {line} of .*{name}: byte 0x.. at position \d+ is not UTF-8\. Save the file as UTF-8"):
            list(read(path))
        corpus = read(path, on_error="skip")
        assert len(list(corpus)) == documents
        assert corpus.skipped.counts.total() == lost
    lines = read(tmp_path / "b.txt", format="lines", on_error="skip")
    assert [document.id for document in lines] == ["b.txt#1", "b.txt#3"]


JSON_LINES = {
    "{": "this is not JSON",
    "[" * 100_000: "this is not JSON",
    "[1]": "list [1] where an object is needed",
    '{"premise": "x"}': "an object with the keys ['premise'] only",
    '{"a": "x"}': "an object with the keys ['a'] only",
    '{"text": 3}': "`text` is int 3 where a string is needed",
    '{"text": " "}': "`text` is empty: ' '",
    '{"text": "x", "keyphrases": "k"}': "`keyphrases` is str 'k' where a list of strings is needed",
    '{"text": "x", "keyphrases": [1]}': "`keyphrases` is int 1 where a string is needed",
    '{"text": "x", "id": true}': "`id` is bool True where a string is needed",
    '{"text": "\\ud800"}': "`text` has half a surrogate pair",
    '{"a": "x", "b": null}': "`b` is missing (null). Fill it in",
    '{"a": "x", "b": "y"}': "a pair in a file of texts",
}


@pytest.mark.parametrize("bad", JSON_LINES, ids=range(len(JSON_LINES)))
def test_a_faulty_json_line_is_refused_or_skipped(write: Write, bad: str) -> None:
    good = json.dumps({"text": "fine"})
    path = write("a.jsonl", f"{good}\n{bad}\n{good}\n")
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"line 2 of {path}: {JSON_LINES[bad]}")
    assert len(str(caught.value)) < 400 + len(str(path))
    corpus = read(path, on_error="skip")
    assert len(list(corpus)) == 2
    assert corpus.skipped.counts.total() == 1


@pytest.mark.parametrize("name", ["a.conllu", "a.conll", "a_conll", "a.txt", "a.jsonl"])
def test_an_empty_file_is_refused_even_in_skip_mode(write: Write, name: str) -> None:
    path = write(name, "\n \n")
    with pytest.raises(CorpusError, match="the file is empty"):
        list(read(path, on_error="skip"))
