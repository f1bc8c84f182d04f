"""The `annotate` command with a real spaCy pipeline, from raw text to a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.annotation import load_parser
from headscope.annotation.spacy_parser import SpacyParser, _tokens
from headscope.annotation.trees import ParsedTree
from headscope.cli.main import app
from headscope.core.document import Document
from headscope.corpora import Corpus, check, read
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from spacy.language import Language

TEXT = "The old keys open doors.  Nobody knew that, did\nthey?\n\nA second paragraph (short) begins here.\n"


def run(*arguments: object, input: str | None = None) -> str:
    """Run a command, which must succeed, and return its output."""
    result = CliRunner().invoke(app, list(map(str, arguments)), input=input)
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    return result.output


def refused(*arguments: object) -> str:
    """Run a command, which must be refused, and return the message."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(result.exception, HeadscopeError), result.output
    return str(result.exception)


def paragraphs(document: Document) -> list[str]:
    """The text of each paragraph, with its spaces. Sentences are joined, since a bad parser may split them anywhere."""
    return ["".join(word.form + " " * word.space_after for one in part for word in one.words).strip() for part in document.paragraphs()]


def test_an_annotated_text_can_be_checked_run_and_shown(pipeline: Path, tmp_path: Path) -> None:
    source, made, results = tmp_path / "keys.txt", tmp_path / "keys.conllu", tmp_path / "run"
    source.write_text(" ".join([TEXT] * 4))
    result = run("annotate", source, "--pipeline", pipeline, "--out", made)
    assert "1 document," in result
    assert "en_tiny 0.1.0" in result
    assert "automatic" in run("corpus", "check", made, "--level", 2)
    assert "annotation:automatic(spaCy-" in run("run", "--corpus", made, "--measures", "relations", "--replicates", 0, "--out", results)
    assert "The annotation is automatic" in run("show", results)


def test_the_annotated_file_is_valid_and_complete(pipeline: Path, tmp_path: Path) -> None:
    made = tmp_path / "keys.conllu"
    (tmp_path / "keys.txt").write_text(TEXT)
    run("annotate", tmp_path / "keys.txt", "--pipeline", pipeline, "-o", made)
    lines = made.read_text().splitlines()
    assert lines[0] == "# newdoc id = keys.txt"
    assert lines[1].startswith("# annotation = automatic; spaCy 3.")
    assert lines[1].endswith("; en_tiny 0.1.0")
    assert lines[2:4] == ["# newpar", "# sent_id = keys.txt-1"]
    assert lines.count("# newpar") == 2
    assert [finding for finding in check([made], 2) if not finding.note] == []
    (document,) = read(made)
    assert paragraphs(document) == ["The old keys open doors. Nobody knew that, did they?", "A second paragraph (short) begins here."]
    spaces = {word.form: word.space_after for word in document.words}
    assert (spaces["doors"], spaces["("], spaces["short"], spaces[")"]) == (False, False, False, True)
    assert all(word.upos and word.xpos and word.relation and word.head is not None for word in document.words)


def test_keyphrases_labels_and_ids_are_kept(nlp: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy.load", lambda name: nlp)
    rows = [
        {"id": "a/b c", "text": "Old keys open doors.", "keyphrases": ["old keys", "a; b"], "label": "good"},
        {"id": "a_b_c", "text": "They close."},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    result = run("annotate", tmp_path / "a.jsonl", "--out", tmp_path / "a.conllu")
    assert "1 semicolons in keyphrases written as commas" in result
    first, second = read(tmp_path / "a.conllu")
    assert (first.id, first.keyphrases, first.label) == ("a/b c", ("old keys", "a, b"), "good")
    assert (second.id, second.keyphrases, second.label) == ("a_b_c", (), None)
    assert [document.sentences[0].id for document in (first, second)] == ["a_b_c-1", "a_b_c.2-1"]
    assert {finding.rule for finding in check([tmp_path / "a.conllu"], 2)} <= {"keyphrase"}


def test_folders_tables_lines_and_standard_input_are_annotated(nlp: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy.load", lambda name: nlp)
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("b", "a"):
        (folder / f"{name}.txt").write_text(f"This is {name}.")
    assert [document.id for document in hs.annotate(folder)] == ["a.txt", "b.txt"]
    (folder / "a.key").write_text("a\n")
    assert [document.keyphrases for document in hs.annotate(folder)] == [("a",), ()]
    (folder / "a.key").unlink()
    (folder / "a.conllu").write_text("annotated already")
    assert [document.id for document in hs.annotate(folder)] == ["a.txt", "b.txt"]
    (tmp_path / "t.tsv").write_text("sentence\tlabel\nIt works.\t1\nIt fails.\t0\n")
    assert [document.label for document in hs.annotate(tmp_path / "t.tsv")] == ["1", "0"]
    (tmp_path / "l.txt").write_text("Keys open\ndoors they say\n\nanother document\n")
    first, _ = hs.annotate(tmp_path / "l.txt", format="lines")
    assert "open" in [sentence.words[-1].form for sentence in first.sentences]  # no sentence continues on the next line
    (tmp_path / "notes.md").write_text("Plain text, whatever its name.")
    assert [document.id for document in hs.annotate(tmp_path / "notes.md")] == ["notes.md"]
    result = CliRunner().invoke(app, ["annotate", "-"], input="Keys open doors.")
    assert result.stdout.startswith("# newdoc id = standard-input.txt\n# annotation = automatic; ")
    assert result.stdout.endswith("\n\n")
    (tmp_path / "empty").mkdir()
    assert "no file in this folder has a name that shows its format" in refused("annotate", tmp_path / "empty")


def test_the_annotation_is_the_same_in_python_and_in_batches_of_any_size(
    nlp: Language, pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"id": f"d{number}", "text": TEXT}) for number in range(6)))
    corpus = hs.annotate(tmp_path / "a.jsonl", pipeline=nlp)
    assert corpus.automatic is not None
    assert corpus.automatic.endswith("; en_tiny 0.1.0")
    monkeypatch.setattr("headscope.annotation.writing._BATCH", 10)
    one_by_one = hs.annotate(str(tmp_path / "a.jsonl"), tmp_path / "a.conllu", pipeline=pipeline)
    assert list(one_by_one) == list(corpus)
    assert list(hs.annotate(read(tmp_path / "a.jsonl"), pipeline=nlp)) == list(corpus)
    monkeypatch.setattr("headscope.annotation.writing._PIECE", 20)
    cut = hs.annotate(tmp_path / "a.jsonl", pipeline=nlp)
    assert list(map(paragraphs, cut)) == list(map(paragraphs, corpus))


def test_white_space_is_removed_and_several_roots_are_joined() -> None:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

    words = ["Go", "  ", "now", "\n", "there", "!"]
    spaces = [True, False, False, False, False, False]
    heads = [0, 0, 1, 3, 3, 0]  # `now` depends on white space, `there` on white space that is a root
    document = Doc(Vocab(), words=words, spaces=spaces, heads=heads, deps=["ROOT", "dep", "advmod", "ROOT", "advmod", "punct"])
    tree = ParsedTree.of(_tokens(document[:]))
    assert [(token.form, token.head, token.relation, token.space_after) for token in tree.tokens] == [
        ("Go", 0, "root", True),
        ("now", 1, "advmod", True),
        ("there", 1, "dep", False),
        ("!", 1, "punct", True),
    ]
    assert tree.moved == (3,)
    assert tree.text == "Go now there!"


def test_the_scheme_of_the_labels_is_named(nlp: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SpacyParser(nlp).scheme == "UD labels"
    monkeypatch.setattr(type(nlp), "pipe_labels", {"parser": ["ROOT", "nsubj", "dobj", "pobj", "nsubjpass", "prep"]})
    clear = SpacyParser(nlp)
    assert clear.scheme == "ClearNLP labels"
    assert clear.name.endswith("; en_tiny 0.1.0; ClearNLP labels")


def test_invalid_arguments_are_refused_and_existing_files_kept(
    nlp: Language, pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import spacy

    source, made, sampler = tmp_path / "a.txt", tmp_path / "a.conllu", read("sampler").paths[0]
    source.write_text("Keys open doors.")
    missing = refused("annotate", source, "--out", made)
    assert "python -m spacy download en_core_web_sm" in missing
    assert "installed: none" in missing or "installed: en_" in missing
    assert "fi_core_news_sm" in refused("annotate", source, "--language", "fi")
    assert "there is no folder" in refused("annotate", source, "--pipeline", tmp_path / "nowhere")
    assert "cannot be loaded as a pipeline of spaCy" in refused("annotate", source, "--pipeline", tmp_path)
    assert "Use spacy or stanza" in refused("annotate", source, "--parser", "udpipe")
    assert "ends in .conllu" in refused("annotate", source, "--pipeline", pipeline, "--out", tmp_path / "a.txt")
    assert "conllu is not a format of raw text" in refused("annotate", sampler, "--pipeline", pipeline)
    spacy.blank("en").to_disk(tmp_path / "blank")
    assert "gives no trees: its components are none" in refused("annotate", source, "--pipeline", tmp_path / "blank", "--out", made)
    assert not made.exists()
    monkeypatch.setattr("spacy.load", lambda name: nlp)
    run("annotate", source, "--pipeline", pipeline, "--out", made, "-q")
    assert "already exists" in refused("annotate", source, "--pipeline", pipeline, "--out", made)
    before = made.read_text()
    (tmp_path / "bad.jsonl").write_text(json.dumps({"text": "Fine."}) + "\n{")
    refused("annotate", tmp_path / "bad.jsonl", "--pipeline", pipeline, "--out", made, "--overwrite")
    assert made.read_text() == before  # an incomplete file does not replace it
    assert [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []
    result = run("annotate", tmp_path / "bad.jsonl", "--pipeline", pipeline, "--out", made, "--overwrite", "--on-error", "skip")
    assert "warning: 1 lines skipped" in result


def test_documents_with_trees_are_refused(nlp: Language) -> None:
    with pytest.raises(HeadscopeError, match="already has trees"):
        hs.annotate(Corpus.of(read("sampler")), pipeline=nlp)


def test_a_parser_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.annotation.trees.find_spec", lambda name: None)
    with pytest.raises(HeadscopeError, match=r"no parser is installed.*headscope\[annotate\]"):
        load_parser()
    with pytest.raises(HeadscopeError, match="stanza is not installed"):
        load_parser("stanza")
