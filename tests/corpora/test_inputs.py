"""Every kind of input gives the same documents and the same results of a run as the same texts in a file."""

from __future__ import annotations

import gc
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.document import Document
from headscope.corpora import Corpus, read
from headscope.corpora.spool import spool_of
from headscope.errors import HeadscopeError
from headscope.models.model import Model

Write = Callable[[str, str], Path]
pytestmark = pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")  # the small model lacks many words
ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": "The cat sat. It ate a fish.\n\nThen it slept.", "genre": "news", "year": 2020, "label": "x"},
    {"id": "b", "text": "Rain fell on the old town.", "genre": "letter", "year": 2021, "label": "y"},
    {"id": "c", "text": "“Où est-il ?” she asked. Nobody knew.", "genre": "news", "year": 2021, "label": "x"},
    *({"id": f"d{n}", "text": f"Number {n} is a dog. The dog ate.", "genre": "list", "year": n, "label": "y"} for n in range(4)),
]  # seven rows: intervals need at least six
RELATIONS = {"relations": {"least": 1}}
TREES = """
    # newdoc id = a
    # genre = news
    # sent_id = a-1
    # text = Cats sleep.
    1 Cats  cat   NOUN  NNS _ 2 nsubj _ _
    2 sleep sleep VERB  VBP _ 0 root  _ SpaceAfter=No
    3 .     .     PUNCT .   _ 2 punct _ _

    # newdoc id = b
    # sent_id = b-1
    # text = Dogs bark.
    1 Dogs  dog   NOUN  NNS _ 2 nsubj _ _
    2 bark  bark  VERB  VBP _ 0 root  _ SpaceAfter=No
    3 .     .     PUNCT .   _ 2 punct _ _
"""


@pytest.fixture
def file(write: Write) -> Path:
    """A file with the texts as JSON lines."""
    return write("texts.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))


def columns() -> dict[str, list[Any]]:
    return {name: [row[name] for row in ROWS] for name in ROWS[0]}


def a_list_of_dicts() -> Any:
    return ROWS


def a_generator() -> Any:
    return (dict(reversed(row.items())) for row in ROWS)


def a_pandas_frame() -> Any:
    return pytest.importorskip("pandas").DataFrame(columns())


def a_pandas_frame_with_an_index() -> Any:
    return pytest.importorskip("pandas").DataFrame(columns(), index=[7, 3, 5, 1, 2, 4, 6])


def a_polars_frame() -> Any:
    return pytest.importorskip("polars").DataFrame(columns())


def an_arrow_table() -> Any:
    return pa.table(dict(reversed(columns().items())))


def an_arrow_reader() -> Any:
    return pa.table(columns()).to_reader(2)


def a_dataset() -> Any:
    return pytest.importorskip("datasets").Dataset.from_dict(columns())


def a_streamed_dataset() -> Any:
    return a_dataset().to_iterable_dataset()


KINDS = [
    a_list_of_dicts,
    a_generator,
    a_pandas_frame,
    a_pandas_frame_with_an_index,
    a_polars_frame,
    an_arrow_table,
    an_arrow_reader,
    a_dataset,
    a_streamed_dataset,
]


def bits(model: Model, corpus: Any, measures: Any = ("tokens", "entropy"), **settings: Any) -> dict[str, bytes]:
    """The tables of a new run, as bytes."""
    return bytes_of(hs.run(model, corpus, measures, replicates=20, gallery=0, **settings))


def bytes_of(run: hs.Run) -> dict[str, bytes]:
    tables = {name: run[name].table.arrow.replace_schema_metadata(None) for name in run.measures}
    assert all(table.num_rows for table in tables.values())
    return {name: table.combine_chunks().to_batches()[0].serialize().to_pybytes() for name, table in tables.items()}


@pytest.mark.parametrize("make", KINDS)
def test_texts_in_memory_equal_those_in_a_file(make: Callable[[], Any], file: Path) -> None:
    expected = list(read(file))
    assert expected[0].metadata == {"genre": "news", "year": 2020}
    corpus = read(make())
    assert list(corpus) == list(corpus) == expected
    assert corpus.hash() == read(ROWS).hash()
    assert corpus.names == ("memory",)


@pytest.mark.parametrize("make", KINDS)
def test_a_run_over_texts_in_memory_gives_the_same_tables_as_over_a_file(make: Callable[[], Any], file: Path, small_model: Model) -> None:
    assert bits(small_model, make()) == bits(small_model, file)


def test_a_list_of_strings_is_a_corpus(write: Write, small_model: Model) -> None:
    texts = [row["text"] for row in ROWS]
    named = [{"text": text, "id": f"text#{number}"} for number, text in enumerate(texts, 1)]
    file = write("named.jsonl", "".join(json.dumps(row) + "\n" for row in named))
    assert list(read(texts)) == list(read(tuple(texts))) == list(read(file))
    assert read(texts).hash() == read(list(texts)).hash() != read(texts[:2]).hash()
    assert bits(small_model, texts) == bits(small_model, file)
    assert "memory@" in hs.run(small_model, texts, ["tokens"], replicates=0, gallery=0).signature


def test_columns_with_other_names_are_read_if_named(file: Path, write: Write, tmp_path: Path) -> None:
    named = {"text": "body", "id": "post"}
    renamed = [{named.get(name, name): value for name, value in row.items()} | {"text": 1.5} for row in ROWS]
    frame = pytest.importorskip("pandas").DataFrame(renamed)
    assert list(read(frame, text="body", id="post")) == list(read(renamed, text="body", id="post")) == list(read(file))
    lines = write("renamed.jsonl", "".join(json.dumps(row) + "\n" for row in renamed))
    pa.parquet.write_table(pa.Table.from_pylist(renamed), tmp_path / "renamed.parquet")
    for path in (lines, tmp_path / "renamed.parquet"):
        corpus = read(f"{path}?text=body&id=post")
        assert list(corpus) == list(read(path, text="body", id="post")) == list(read(file))
        assert corpus.names == (f"{path}?text=body&id=post",)
        assert corpus.hash() == read(path, text="body", id="post").hash() != read(path, text="body").hash()


def test_parquet_feather_and_arrow_files_are_read(file: Path, tmp_path: Path, small_model: Model) -> None:
    table = pa.Table.from_pylist(ROWS)
    pa.parquet.write_table(table, tmp_path / "texts.parquet")
    with pa.ipc.new_file(tmp_path / "texts.feather", table.schema) as sink:
        sink.write_table(table, 2)
    with pa.ipc.new_stream(tmp_path / "texts.arrow", table.schema) as sink:
        sink.write_table(table, 2)
    for name in ("texts.parquet", "texts.feather", "texts.arrow"):
        assert list(read(tmp_path / name)) == list(read(file)), name
    assert bits(small_model, tmp_path / "texts.parquet") == bits(small_model, file)
    assert not read(tmp_path / "texts.parquet").pairs
    pa.parquet.write_table(pa.table({"one": ["x"], "two": ["y"]}), tmp_path / "pairs.parquet")
    assert read(tmp_path / "pairs.parquet", a="one", b="two").pairs


def test_csv_columns_can_be_named_in_the_file_name(write: Write) -> None:
    table = write("posts.csv", 'post,body,genre,text\n1,"Snow, rain.",news,other\n')
    (document,) = read(f"{table}?text=body&id=post")
    assert (document.id, document.sentences[0].text, document.metadata) == ("1", "Snow, rain.", {"genre": "news"})
    with pytest.raises(HeadscopeError, match=r"there is no column 'bdy': \['post', 'body', 'genre', 'text'\]"):
        list(read(table, text="bdy"))


def test_a_saved_dataset_is_read(file: Path, tmp_path: Path, small_model: Model) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    a_dataset().save_to_disk(str(tmp_path / "saved"), num_shards=2)
    corpus = read(tmp_path / "saved")
    assert list(corpus) == list(read(file))
    assert corpus.names == (str(tmp_path / "saved"),)
    assert bits(small_model, tmp_path / "saved") == bits(small_model, file)
    datasets.DatasetDict({"train": a_dataset(), "test": a_dataset()}).save_to_disk(str(tmp_path / "splits"))
    assert list(read(tmp_path / "splits" / "train")) == list(read(file))
    with pytest.raises(HeadscopeError, match=r"several splits: test, train\. Name one of them, as in .*splits/test"):
        read(tmp_path / "splits")
    with pytest.raises(HeadscopeError, match=r"DatasetDict is not a corpus; it has train\. Give one of its values"):
        read(datasets.DatasetDict({"train": a_dataset()}))


def test_token_lists_of_the_conllu_package_are_read(columns: Write, small_model: Model) -> None:
    conllu = pytest.importorskip("conllu")
    path = columns("trees.conllu", TREES)
    lists = conllu.parse(path.read_text(encoding="utf-8"))
    corpus = read(lists)
    assert list(corpus) == list(read(path))
    assert next(iter(corpus)).metadata == {"genre": "news"}
    assert bits(small_model, lists, RELATIONS) == bits(small_model, path, RELATIONS)
    assert hs.check_corpus(lists) == []
    lists[0][0]["deprel"] = "nonsense"
    assert [finding.line for finding in hs.check_corpus(lists) if not finding.note] == [5]


def test_spacy_docs_are_read(columns: Write, small_model: Model, tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    docs = spacy_docs(spacy)
    expected = [
        Document(document.id, tuple(s.__class__(s.words) for s in document.sentences), automatic="spaCy", metadata=document.metadata)
        for document in read(columns("trees.conllu", TREES))
    ]
    assert list(read(docs)) == expected
    bin = spacy.tokens.DocBin(docs=docs, store_user_data=True)
    bin.to_disk(tmp_path / "docs.spacy")
    assert list(read(bin)) == list(read(tmp_path / "docs.spacy")) == expected
    expected_bits = bits(small_model, tmp_path / "trees.conllu", RELATIONS)
    assert bits(small_model, docs, RELATIONS) == bits(small_model, tmp_path / "docs.spacy", RELATIONS) == expected_bits


def test_spacy_docs_without_trees_are_split_into_sentences_and_paragraphs(small_model: Model) -> None:
    """Words are the tokens of spaCy; sentences end at full stops, paragraphs at blank lines."""
    spacy = pytest.importorskip("spacy")
    (document,) = read(spacy.blank("en")("She doesn't know. He does.\n\n Fine."))
    assert document.id == "doc#1"
    assert [[word.form for word in sentence.words] for sentence in document.sentences] == [
        ["She", "does", "n't", "know", "."],
        ["He", "does", "."],
        ["Fine", "."],
    ]
    assert [sentence.paragraph for sentence in document.sentences] == [0, 0, 1]
    assert [sentence.text for sentence in document.sentences] == ["She doesn't know.", "He does.", "Fine."]
    assert document.layers == set()
    assert document.automatic is None


def spacy_docs(spacy: Any) -> list[Any]:
    nlp, docs = spacy.blank("en"), []
    for id, genre, words, tags in (("a", "news", ["Cats", "sleep", "."], "cat sleep ."), ("b", None, ["Dogs", "bark", "."], "dog bark .")):
        doc = spacy.tokens.Doc(
            nlp.vocab,
            words=words,
            spaces=[True, False, True],
            lemmas=tags.split(),
            pos=["NOUN", "VERB", "PUNCT"],
            tags=["NNS", "VBP", "."],
            heads=[1, 1, 1],
            deps=["nsubj", "ROOT", "punct"],
        )
        doc.user_data.update({"id": id} | ({"genre": genre} if genre else {}))
        docs.append(doc)
    return docs


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def stdin(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return stdin


def test_standard_input_is_read(stdin: Callable[[str], None], file: Path, small_model: Model) -> None:
    stdin("The cat sat.\n\nIt ate.")
    corpus = read("-")
    (document,) = corpus
    assert (document.id, [sentence.text for sentence in document.sentences]) == ("standard-input.txt", ["The cat sat.", "It ate."])
    assert (corpus.format, corpus.names, list(corpus)) == ("text", ("-",), [document])
    assert corpus.skipped.lines(read=True)[0].startswith("1 streams copied to a temporary file")
    stdin(file.read_text(encoding="utf-8"))
    assert bits(small_model, "-", format="jsonl") == bits(small_model, file)
    with pytest.raises(HeadscopeError, match="standard input is named twice"):
        read("-", "-")
    stdin("")
    with pytest.raises(HeadscopeError, match="standard input is empty"):
        read("-")


def test_a_folder_of_files_is_read(file: Path, tmp_path: Path, small_model: Model) -> None:
    (folder := tmp_path / "folder").mkdir()
    for number, row in enumerate(ROWS):
        (folder / f"{number}.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (folder / "README.md").write_text("no corpus")
    (folder / ".hidden.jsonl").write_text("{}")
    corpus = read(folder)
    assert list(corpus) == list(read(file))
    assert corpus.skipped.lines() == ["1 files of a folder skipped: their names show no format, or another one (first: README.md)"]
    assert corpus.names == (str(folder),)
    assert bits(small_model, folder) == bits(small_model, file)
    (folder / "notes.txt").write_text("Notes.")
    with pytest.raises(HeadscopeError, match=r"the files are of different formats: notes.txt is text, 0.jsonl is jsonl"):
        read(folder)
    assert list(read(folder, format="jsonl")) == list(read(file))
    (folder / "sub").mkdir()
    (folder / "sub" / "more.jsonl").write_text(json.dumps({"text": "A sub-folder is ignored."}), encoding="utf-8")
    assert list(read(folder, format="jsonl")) == list(read(file))
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(HeadscopeError, match="no file in this folder has a name that shows its format"):
        read(empty)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (None, "None is not a corpus. Give a list of strings"),
        ([], "the list of texts is empty. Give at least one text"),
        (iter([]), "the stream of texts is empty"),
        (5, "int is not a corpus"),
        ({"text": ["x"]}, "dict is not a corpus; it has text"),
        (["x y", 3], r"item 2 of the list is int where a string is needed: 3\. Give strings, or dicts with a `text`"),
        (["x y", None], "item 2 of the list is None where a string is needed"),
        ([{"text": "x"}, "y"], "item 2 of the list is str where a dict is needed: 'y'"),
        (["x y", " "], "item 2 of the list: `text` is empty: ' '. Fill it in"),
        ([{"text": "x"}, {"text": None}], r"item 2 of the list: `text` is missing \(null\). Fill it in"),
        ([{"body": "x", "n": 1}], r"no column with a text: \['body', 'n'\]. Name it, as in headscope.read\(table, text=\"body\"\)"),
        (["missing.conllu"], "missing.conllu: there is no such file"),
        (["sampler", "Snow."], "'sampler' is the name of a file, but 'Snow.' is not. Give only file names, or only texts"),
        ("Snow fell.", "Snow fell.: there is no such file.* Give texts as a list in Python"),
    ],
)
def test_an_invalid_corpus_is_refused_in_one_line(texts: Any, message: str) -> None:
    with pytest.raises(HeadscopeError, match=message) as caught:
        list(read(texts))
    assert "\n" not in str(caught.value)


def test_errors_in_tables_name_the_row_and_the_column() -> None:
    table = pa.table({"body": ["x", None], "n": [1, 2]})
    with pytest.raises(HeadscopeError, match=r"row 2 of the table: `text` is missing \(null\)\. Fill it in"):
        list(read(table, text="body"))
    corpus = read(table, text="body", on_error="skip")
    assert [document.metadata for document in corpus] == [{"n": 1}]
    assert corpus.skipped.lines() == ["1 lines skipped: missing value (first: row 2 of the table)"]
    with pytest.raises(HeadscopeError, match=r"row 1 of the table: there is no column 'bdy': \['body', 'n'\]\. Name one of these"):
        read(table, text="bdy")
    with pytest.raises(HeadscopeError, match=r"genre='n' does not name a column\. Name columns for text, id, label"):
        read(table, text="body", genre="n")
    with pytest.raises(HeadscopeError, match="columns are named"):
        read("sampler", text="body")
    with pytest.raises(HeadscopeError, match="the table is empty"):
        read(table.slice(0, 0), text="body")


def test_later_changes_to_a_list_do_not_change_the_corpus() -> None:
    rows = [{"text": "Snow."}]
    corpus = read(rows)
    rows[0]["text"] = "Rain."
    assert next(iter(corpus)).sentences[0].text == "Snow."


def test_temporary_copies_are_removed_with_the_corpus() -> None:
    corpus = read(["Snow."])
    folder = corpus.paths[0].parent
    assert spool_of(corpus.paths[0]) is not None
    assert folder.exists()
    del corpus
    gc.collect()
    assert not folder.exists()


def test_a_stream_is_not_kept_in_memory() -> None:
    """Items are freed while the copy is written. The test counts the items that are alive."""

    class Text(dict[str, str]):
        alive = 0

        def __init__(self, text: str) -> None:
            super().__init__(text=text)
            Text.alive += 1

        def __del__(self) -> None:
            Text.alive -= 1

    most = 0

    def stream() -> Iterator[Text]:
        nonlocal most
        for number in range(500):
            yield Text(f"Text {number}.")
            most = max(most, Text.alive)

    assert len(list(read(stream()))) == 500
    assert most < 5


def test_tokens_may_replace_the_text() -> None:
    (document,) = read([{"tokens": [["Ann", "ate"], ["Fine"]], "ner": [1, 2], "genre": "news"}])
    assert [[word.form for word in sentence.words] for sentence in document.sentences] == [["Ann", "ate"], ["Fine"]]
    assert document.metadata == {"genre": "news"}


def test_a_rerun_over_texts_in_memory_needs_the_same_texts(small_model: Model, tmp_path: Path) -> None:
    """No file contains these texts, so the rerun is refused unless the same texts are passed again."""
    settings: dict[str, Any] = {"replicates": 5, "gallery": 0}
    texts = [row["text"] for row in ROWS]
    hs.run(small_model, texts, ["tokens"], tmp_path / "run", **settings)
    with pytest.raises(HeadscopeError, match=r"was made from texts in memory, not from a file\. Give the texts again: headscope\.rerun"):
        hs.rerun(tmp_path / "run", model=small_model)
    with pytest.raises(HeadscopeError, match="the corpus given has changed since"):
        hs.rerun(tmp_path / "run", model=small_model, corpus=texts[:2])
    assert hs.rerun(tmp_path / "run", model=small_model, corpus=texts).identical


def test_a_rerun_finds_named_columns_and_folders(small_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("folder/posts.csv").write_text("post,body\n1,Snow fell.\n2,Rain came.\n")
    for corpus in ("folder/posts.csv?text=body&id=post", "folder"):
        if corpus == "folder":
            shutil.move("folder/posts.csv", "posts.csv")
            Path("folder/posts.txt").write_text("Snow fell.")
        out = tmp_path / f"run {Path(corpus).name[:6]}"
        hs.run(small_model, corpus, ["tokens"], out, replicates=5, gallery=0)
        assert hs.rerun(out, model=small_model).identical


def test_other_functions_accept_texts_in_memory_or_refuse_them_clearly(small_model: Model) -> None:
    texts = ["The cat sat on the mat.", "Dogs bark at night."]
    assert hs.corpus_stats(texts).documents == 2
    documents = list(read("sampler"))[:2]
    assert bits(small_model, documents) == bits(small_model, list(read("sampler").paths)[:2])
    study = hs.flow(small_model, documents, measures=["A"], parts=["trees"], limit=2, replicates=0)
    assert study.signature.count("corpus:memory@") == 1
    assert hs.plan(small_model, texts, ["tokens"], tried=0).shards == 1
    with pytest.raises(HeadscopeError, match=r"memory \(read as jsonl\) has no lines to check"):
        hs.check_corpus(texts)
    with pytest.raises(HeadscopeError, match="a replication reads its corpora from files"):
        hs.replicate("clark2019", "mini", {"treebank": Corpus.of([])})


def test_the_command_line_reads_standard_input_and_named_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are named after the input. A rerun of standard input is refused."""
    monkeypatch.chdir(tmp_path)
    Path("posts.csv").write_text("post,body\n1,Snow fell.\n2,Rain came.\n")
    options = ["--measures", "tokens", "--replicates", "5", "--gallery", "0", "--quiet"]
    piped_in = "id,text\n1,Snow fell.\n2,Rain came.\n"
    for corpus in (["-", "--corpus-format", "csv"], ["posts.csv?text=body&id=post"]):
        assert CliRunner().invoke(app, ["run", "--corpus", *corpus, *options], input=piped_in).exit_code == 0
    piped, named = hs.open_run("runs/mini-stdin"), hs.open_run("runs/mini-posts")
    assert bytes_of(piped) == bytes_of(named)
    assert "|corpus:-@" in piped.signature
    with pytest.raises(HeadscopeError, match="was made from standard input, not from a file"):
        hs.rerun("runs/mini-stdin")
    assert hs.rerun("runs/mini-posts").identical
