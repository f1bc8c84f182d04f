"""Marks of automatic annotation in files, documents and corpora."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.core.document import Document, Sentence, Word
from headscope.corpora import Corpus, read, stats
from headscope.corpora.automatic import joined, parser_of, sentence, short, summed_up
from headscope.corpora.files import digest

SPACY = "spaCy 3.8.18; en_core_web_sm 3.8.0"
MARK = f"# annotation = automatic; {SPACY}\n"
ROW = "1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n"


def document(id: str, mark: str = "", sentences: int = 2) -> str:
    head = f"# newdoc id = {id}\n{mark}"
    return head + "".join(f"# sent_id = {id}-{number}\n# text = Go\n{ROW}" for number in range(sentences))


def parsers(path: Path, text: str) -> list[str | None]:
    path.write_text(text)
    corpus = read(path)
    found = [one.automatic for one in corpus]
    assert corpus.automatic == summed_up(found)  # determined without reading the sentences
    return found


def test_a_mark_applies_only_to_its_document(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    assert parsers(path, document("x", MARK) + document("y", MARK)) == [SPACY, SPACY]
    assert read(path).automatic == f"automatic; {SPACY}"
    assert parsers(path, document("x", MARK) + document("y")) == [SPACY, None]
    assert read(path).automatic == f"partly automatic; {SPACY}"
    assert parsers(path, document("x") + document("y", MARK.replace("automatic", "manual"))) == [None, None]
    assert read(path).automatic is None


def test_a_mark_before_the_first_document_applies_to_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    assert parsers(path, f"{MARK}\n{document('x')}{document('y')}") == [SPACY, SPACY]
    # Without # newdoc every sentence is a document. The mark above the first one applies to all.
    assert parsers(path, MARK + "# sent_id = 1\n" + ROW + "# sent_id = 2\n" + ROW) == [SPACY, SPACY]
    # With # newdoc, a mark above a sentence applies only to the document of that sentence.
    assert parsers(path, document("x") + MARK + ROW + document("y")) == [SPACY, None]


def test_the_words_annotation_and_automatic_in_a_text_are_not_a_mark(tmp_path: Path) -> None:
    text = document("x").replace("Go", "annotation").replace("go", "automatic")
    assert parsers(tmp_path / "a.conllu", text) == [None]


def test_marks_are_read_from_compressed_files_and_memory_but_not_plain_text(tmp_path: Path) -> None:
    text = document("x", MARK) + document("y")
    (tmp_path / "a.conllu.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "a.conllu").write_text(text)
    corpus = read(tmp_path / "a.conllu.gz")
    assert corpus.automatic == f"partly automatic; {SPACY}"
    assert corpus.hash() == read(tmp_path / "a.conllu").hash()
    assert Corpus.of(corpus).automatic == corpus.automatic
    assert Corpus.of(list(corpus)[1:]).automatic is None
    (tmp_path / "plain.txt").write_text("# annotation = automatic; no\n")
    assert read(tmp_path / "plain.txt").automatic is None


def test_a_mark_changes_the_hash_and_an_unmarked_document_keeps_its_hash() -> None:
    assert read("sampler").automatic is None
    one = Document("d", (Sentence((Word("Go"),)),))
    # This hash was computed before marks existed.
    assert Corpus.of([one]).hash() == "c56aea87bf7fa3519927f671d1a97ab6d5aaccff320dbb348cbf7de9a15eebfc"
    assert Corpus.of([replace(one, automatic="x")]).hash() != Corpus.of([one]).hash()


@pytest.mark.parametrize("place", [0, 1, (1 << 20) - 5, (1 << 20) - 1, 1 << 20, (1 << 20) + 7])
def test_bytes_are_found_across_chunks(tmp_path: Path, place: int) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"." * place + b"annotation" + b"." * 99)
    assert digest(path, b"annotation")[1]
    path.write_bytes(b"." * place + b"annotatio" + b"." * 99)
    assert not digest(path, b"annotation")[1]


def test_marks_are_parsed_joined_shortened_and_explained() -> None:
    assert parser_of("Automatic") == "a parser without a name"
    assert parser_of("semi-automatic; spaCy") is None
    both = summed_up([SPACY, "Stanza 1.15.0; en ewt", SPACY])
    assert both == f"automatic; Stanza 1.15.0; en ewt / {SPACY}"
    assert short(both) == "automatic(Stanza-1.15.0+spaCy-3.8.18)"
    assert joined([both, None]) == f"partly {both}"
    assert joined([both, f"automatic; {SPACY}"]) == both
    assert joined([f"partly automatic; {SPACY}", f"automatic; {SPACY}"]) == f"partly automatic; {SPACY}"
    assert joined([None, None]) is None
    assert short(f"partly automatic; {SPACY}") == "partly-automatic(spaCy-3.8.18)"
    assert sentence(f"partly automatic; {SPACY}").startswith("Some of the annotation is automatic")
    assert "(spaCy 3.8.18, en_core_web_sm 3.8.0)" in sentence(f"automatic; {SPACY}")


def test_stats_and_check_report_marks(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(document("x", MARK) + document("y"))
    assert stats(read(path)).parsers == {SPACY, None}
    result = CliRunner().invoke(app, ["corpus", "stats", str(path), "--model", "none"])
    assert f"annotation  partly automatic; {SPACY}" in result.output
    result = CliRunner().invoke(app, ["corpus", "check", str(path), "--level", "2"])
    assert result.exit_code == 0, result.output
    assert "a.conllu: Some of the annotation is automatic" in result.output
    beside = CliRunner().invoke(app, ["corpus", "stats", str(path), "--beside", "sampler", "--model", "none"])
    assert f"partly automatic; {SPACY}" in beside.output
    assert "automatic" not in CliRunner().invoke(app, ["corpus", "stats", "sampler", "--model", "none"]).output


def test_a_label_in_the_header_of_a_document_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(document("x", "# label = good\n") + document("y"))
    assert [one.label for one in read(path)] == ["good", None]
