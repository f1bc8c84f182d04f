from __future__ import annotations

import gzip
import lzma
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.corpora import Corpus, read
from headscope.corpora.formats import guess_format
from headscope.errors import CorpusError, HeadscopeError

Write = Callable[[str, str], Path]
ROW = "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n"


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.conllu", "conllu"),
        ("a.b.conllu.xz", "conllu"),
        ("A.CONLLU", "conllu"),
        ("a.conll", "conllx"),
        ("a.conllx.gz", "conllx"),
        ("a.v4_gold_conll", "conll2012"),
        ("a.v4_auto_conll.xz", "conll2012"),
        ("a.gold_conll.gz", "conll2012"),
        ("dev_conll", "conll2012"),
        ("a.txt", "text"),
        ("a.jsonl.gz", "jsonl"),
        ("gap-test.tsv.xz", "gap"),
        ("dev.tsv.xz", "tsv"),
        ("a.csv", "csv"),
    ],
)
def test_the_file_name_determines_the_format(name: str, format: str) -> None:
    assert guess_format(Path(name)) == format


def test_an_unknown_suffix_is_refused_with_a_list_of_formats(write: Write) -> None:
    path = write("a.dat", "x")
    with pytest.raises(CorpusError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "conllu, conllx, conll2012, text, lines, jsonl" in caught.value.remedy
    assert [document.id for document in read(path, format="lines")] == ["a.dat#1"]


def test_invalid_arguments_are_refused(write: Write, tmp_path: Path) -> None:
    conllu, text = write("a.conllu", ROW), write("a.txt", "x")
    with pytest.raises(HeadscopeError, match=r"different formats: .*Read them one at a time"):
        read(conllu, text)
    with pytest.raises(HeadscopeError, match="there is no format 'xml'"):
        read(text, format="xml")
    with pytest.raises(HeadscopeError, match="on_error is 'ignore'"):
        read(text, on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(HeadscopeError, match="no corpus is named"):
        read()
    with pytest.raises(CorpusError, match="there is no such file"):
        read(tmp_path / "none.txt")
    with pytest.raises(HeadscopeError, match=r"different formats: a.txt is text, a.conllu is conllu"):
        read(tmp_path)


def test_a_file_of_comments_only_is_refused(write: Write) -> None:
    with pytest.raises(CorpusError, match=r"there is no document in it \(read as conllu\)"):
        list(read(write("a.conllu", "# newdoc id = x\n"), on_error="skip"))


def test_files_are_read_in_order_and_repeated_ids_are_numbered(write: Write) -> None:
    ids = ["x", "x", "x#2", "x"]
    paths = [write(f"{n}.conllu", f"# newdoc id = {id}\n{ROW}") for n, id in enumerate(ids)]
    corpus = read(*paths)
    assert corpus.paths == tuple(paths)
    assert [document.id for document in corpus] == ["x", "x#2", "x#2#2", "x#3"]


def test_each_iteration_starts_at_the_beginning_and_resets_the_counts(write: Write) -> None:
    row = ROW.replace("0\troot", "9\tdep")
    corpus = read(write("a.conllu", f"# newdoc id = x\n{ROW}\n{row}\n# newdoc id = y\n{ROW}\n{row}"), on_error="skip")
    reason = "sentences skipped: head outside the sentence"
    first = list(corpus)
    assert corpus.skipped.counts == {reason: 2}
    assert list(corpus) == first
    assert corpus.skipped.counts == {reason: 2}
    next(iter(corpus))
    assert corpus.skipped.counts == {reason: 1}


def test_compressed_files_read_and_hash_like_plain_ones(write: Write, tmp_path: Path) -> None:
    plain = write("a.conllu", f"{ROW}\n{ROW}")
    corpora = [read(plain)]
    for suffix, compress in ((".gz", gzip.compress), (".xz", lzma.compress)):
        path = tmp_path / f"a.conllu{suffix}"
        path.write_bytes(compress(plain.read_bytes()))
        corpora.append(read(path))
    assert list(corpora[0]) == list(corpora[1]) == list(corpora[2])
    assert corpora[0].hash() == corpora[1].hash() == corpora[2].hash()
    assert len(corpora[0].hash()) == 64


def test_a_corpus_of_documents_numbers_repeated_ids_and_hashes_the_content() -> None:
    plain = Document("d", (Sentence((Word("a"),)),))
    tagged = Document("d", (Sentence((Word("a", xpos="DT"),)),))
    linked = Document("d", (Sentence((Word("a"),)),), (Mention("1", 0, 1),))
    corpus = Corpus.of(iter([plain, plain]))
    assert [document.id for document in corpus] == ["d", "d#2"] == [document.id for document in corpus]
    assert (corpus.format, corpus.paths, corpus.pairs) == ("memory", (), False)
    hashes = {Corpus.of(documents).hash() for documents in ([plain], [tagged], [linked], [plain, plain], [])}
    assert len(hashes) == 5
    assert Corpus.of([plain]).hash() == Corpus.of([plain]).hash()


@pytest.mark.parametrize(
    ("format", "unit"), [("conllu", f"# newdoc\n{ROW}\n"), ("lines", "one two\n\n"), ("jsonl", '{"text": "one two"}\n')]
)
def test_reading_keeps_one_document_in_memory(write: Write, format: str, unit: str) -> None:
    corpus = read(write("big", unit * 8_000), format=format)
    list(read(write("small", unit), format=format))
    tracemalloc.start()
    count = sum(1 for _ in corpus)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 8_000
    # The set of ids and the buffer take 1.7 to 2.7 MB; 8,000 documents would take at least 3.7 MB.
    assert peak < 3_200_000


def test_the_import_loads_no_heavy_packages() -> None:
    code = "import sys, headscope.corpora; print(*{'torch', 'transformers', 'pyarrow', 'pydantic', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_sampler_is_part_of_the_package() -> None:
    corpus = read("sampler")
    assert corpus.format == "conllu"
    assert [path.name for path in corpus.paths] == sorted(path.name for path in corpus.paths)
    assert next(iter(corpus)).sentences
