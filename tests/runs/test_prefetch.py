"""A corpus read by several processes: texts, numbers and messages are the same as with one process."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headscope as hs
from headscope.core.document import Document, Sentence, Word
from headscope.core.hashing import hash64
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.batches import shards
from headscope.encoding.texts import Encoder
from headscope.engine import prefetch
from headscope.engine.packed_texts import PackedDocument, PackedTexts, packed_shards
from headscope.engine.prefetch import Prefetcher
from headscope.engine.sample import Sample
from headscope.errors import HeadscopeError
from headscope.models.model import Model
from headscope.results.counts import Sizes


class Cost(NamedTuple):
    """A stand-in for a text: its place and its number of tokens."""

    place: tuple[int, int]
    cost: int


SETTINGS: dict[str, Any] = {"unit": "paragraph", "max_length": 40, "shard_tokens": 90, "replicates": 5}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Five files with ids that are repeated within a file and across files, overlong texts, and lines that cannot be
    read.
    """
    folder, sentences = tmp_path_factory.mktemp("files"), [one.text for document in read("sampler") for one in document.sentences]
    names = [["a", "b", "b", "c"], ["d", "e", "d", "e#2", "f"], ["g", "a", "g", "h", "b"], ["i", "j"], ["x", "b#2", "x", "a"]]
    paths = []
    for number, ids in enumerate(names):
        path = folder / f"{number}.jsonl"
        texts = [" ".join(sentences[7 * number + 3 * place :][: 1 + place % 3]) for place in range(len(ids))]
        rows = [json.dumps({"id": id, "text": text, "genre": text[0]}) for id, text in zip(ids, texts, strict=True)]
        path.write_text("\n".join([*rows[:2], *(["{"] if number in (1, 2) else []), *rows[2:]]) + "\n", encoding="utf-8")
        paths.append(path)
    return paths


def test_a_run_with_readers_writes_the_same_bytes(small_model: Model, files: list[Path], tmp_path: Path) -> None:
    folders = {}
    for readers in (0, 2):
        out = tmp_path / str(readers)
        corpus = read(*files, on_error="skip")
        hs.run(small_model, corpus, ["positions"], out, on_error="skip", readers=readers, by="genre", **SETTINGS)
        manifest = json.loads((out / "run.json").read_text())
        names = ["states.safetensors", "gallery.safetensors", *(f"tables/{path.name}" for path in (out / "tables").iterdir())]
        folders[readers] = (
            {name: manifest[name] for name in ("counts", "dropped", "readings", "identity", "slices")},
            {name: (out / name).read_bytes() for name in sorted(names)},
        )
    assert folders[2] == folders[0]
    messages = " ".join(folders[0][0]["dropped"])
    assert "lines skipped" in messages
    assert "overlong texts dropped" in messages


def test_texts_from_readers_equal_those_of_one_process(small_model: Model, files: list[Path]) -> None:
    """The texts themselves, and the texts of a pickled shard."""
    encoder = Encoder(small_model.tokenizer, unit="paragraph", max_length=40)
    plain, ours = Tally(), Tally()
    corpus = read(*files, on_error="skip")
    expected = list(encoder.texts(corpus, plain))
    skipped = corpus.skipped
    corpus = read(*files, on_error="skip")
    documents = list(Prefetcher(corpus, 1).documents(encoder, ours))
    assert "a#3" in {texts.document for texts in documents}, "the third document with that name"
    assert (ours.lines(), ours.first) == (plain.lines(), plain.first)
    assert corpus.skipped.lines() == skipped.lines()
    (shard,) = packed_shards(documents, 1 << 20)
    sent = pickle.loads(pickle.dumps(shard))
    packed = [text for texts in documents for text in texts]
    assert len(sent) == len(packed) == len(expected)
    for text, one, unpacked in zip(expected, packed, sent, strict=True):
        for found in (one.whole(), unpacked):
            assert found.annotation == text.annotation
            assert found.ids.tolist() == text.ids.tolist()
            assert (found.word_of, found.roles, found.pieces) == (text.word_of, text.roles, text.pieces)
        assert (len(one), one.cost, one.id, one.hash) == (len(text), text.cost, text.id, hash64(text.id))
        assert one.target is None
    for texts in documents:
        own = [Sizes.of(text) for text in texts.whole()]
        assert list(texts.sizes()) == own
        assert texts.total == Sizes(*(sum(column) for column in zip(*own, strict=True))) if own else not any(texts.total)


def test_packed_texts_with_a_target_have_the_costs_targets_and_ids_of_the_texts(small_model: Model) -> None:
    encoder = Encoder(small_model.tokenizer, decoder_start=0)
    (document,) = islice(read("sampler"), 1)
    expected = list(encoder.texts([document], Tally()))
    texts = PackedTexts.of(PackedDocument.of(document, "renamed", encoder))
    assert texts.document == "renamed"
    assert texts.costs.tolist() == [text.cost for text in expected]
    assert [len(text.target or ()) for text in texts] == [len(text.target or ()) for text in expected]
    assert [text.id for text in texts.part(1, 3)] == [text.id.replace(document.id, "renamed") for text in expected[1:3]]


@given(st.lists(st.lists(st.integers(1, 30), max_size=9), max_size=9), st.integers(1, 90))
def test_packed_documents_are_cut_into_the_same_shards_as_their_texts(costs: list[list[int]], tokens: int) -> None:
    """Shards of packed documents have the same texts as shards that are cut text by text."""
    texts = [[Cost((number, place), cost) for place, cost in enumerate(own)] for number, own in enumerate(costs)]
    documents = []
    for own in texts:
        rows = np.array([[text.cost, 0, 0, 0, 0, 0, -1, 0] for text in own], np.int64).reshape(-1, 8)
        documents.append(PackedTexts("d", "", rows, pickle.dumps(own)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.engine.packed_texts.unpack", pickle.loads)
        found: list[Any] = [list(shard) for shard in packed_shards(documents, tokens)]
    assert found == list(shards((text for own in texts for text in own), tokens))


@pytest.mark.parametrize("lengths", [(6, 40), (1, 60), (41, 90)])
def test_a_sample_of_packed_texts_equals_that_of_the_texts(lengths: tuple[int, int], mini: Model) -> None:
    """Also if texts are too long for the sample, or have a length outside the readable range."""
    encoder = Encoder(mini.tokenizer, unit="document", max_length=4000, overlong="truncate")
    rng = np.random.default_rng(0)
    documents = [Document(f"d{n}", (Sentence((Word("the"),) * int(size)),)) for n, size in enumerate(rng.integers(*lengths, 150))]
    documents.append(Document("long", (Sentence((Word("the"),) * 3000),)))
    one, whole = Sample(12, mini.layout), Sample(12, mini.layout)
    for document in documents:
        for text in encoder.texts([document], Tally()):
            one.add(text)
        whole.add_all(PackedTexts.of(PackedDocument.of(document, document.id, encoder)))
    assert [text.id for text in whole.texts()] == [text.id for text in one.texts()]
    assert (one.too_long, whole.too_long) == (1, 1)


def test_a_run_is_refused_at_the_same_text_with_readers(small_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is in the middle of a document with many sentences."""
    monkeypatch.setattr("headscope.results.counts.ENOUGH", 60)
    lines = ["The the the."] * 20 + ["The 猫 猫 猫 猫."] * 40
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    messages = []
    for readers in (0, 2):
        with pytest.raises(HeadscopeError, match="too many to measure words") as refusal:
            hs.run(small_model, read(tmp_path / "a.txt"), {"entropy": {"level": "word"}}, tmp_path / str(readers), readers=readers)
        messages.append(refusal.value.problem)
    assert messages[0] == messages[1]
    assert "first" in messages[0], "the run is refused before the end of the corpus"


TREES = (
    "# newdoc id = {0}\n1\tIt\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tis\t_\tAUX\t_\t_\t0\troot\t_\t_\n3\t{0}\t_\tNOUN\t_\t_\t2\tobj\t_\t_\n\n"
)


@pytest.mark.parametrize(("format", "counts"), [("jsonl", [7]), ("conllu", [7]), ("conllu", [2, 1, 5])])
def test_any_number_of_readers_reads_the_same_texts_in_order(small_model: Model, tmp_path: Path, format: str, counts: list[int]) -> None:
    """With more readers than files or documents, and a document without texts among others."""
    paths, names = [], iter("abcdefgh")
    for number, count in enumerate(counts):
        paths.append(tmp_path / f"{number}.{format}")
        own = ["xqzj" * 20 if name == "c" else name for name in (next(names) for _ in range(count))]
        rows = [TREES.format(name) if format == "conllu" else json.dumps({"id": name, "text": f"It is {name}."}) + "\n" for name in own]
        paths[-1].write_text("".join(rows), encoding="utf-8")
    encoder = Encoder(small_model.tokenizer, max_length=30)
    plain = Tally()
    expected = [(text.id, text.ids.tolist()) for text in encoder.texts(read(*paths), plain)]
    assert plain.lines()
    for readers in (1, 3):
        ours, ahead = Tally(), Prefetcher(read(*paths), readers)
        shares = []
        found = []
        for texts in ahead.documents(encoder, ours):
            found += [(text.id, text.whole().ids.tolist()) for text in texts]
            shares.append(ahead.share)
        assert found == expected
        assert (ours.lines(), ours.first) == (plain.lines(), plain.first)
        assert shares == sorted(shares)
        assert ahead.share == 1


def test_readers_divide_files_of_one_document_each(small_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        (tmp_path / f"{number}.txt").write_text(f"It is {number}.\n", encoding="utf-8")
    encoded: Counter[int] = Counter()
    document = prefetch._Reader.document

    def counted(reader: prefetch._Reader, check: Callable[[], None]) -> PackedDocument | None:
        found = document(reader, check)
        encoded[id(reader)] += found is not None
        return found

    monkeypatch.setattr(prefetch._Reader, "document", counted)
    encoder = Encoder(small_model.tokenizer, max_length=30)
    documents = Prefetcher(read(*sorted(tmp_path.iterdir())), 3).documents(encoder, Tally())
    assert [texts.document for texts in documents] == [f"{number}.txt" for number in range(7)]
    assert sorted(encoded.values()) == [2, 2, 3]


@pytest.mark.parametrize("readers", [1, 3])
def test_an_error_is_raised_after_all_documents_before_it(small_model: Model, files: list[Path], readers: int) -> None:
    taken: list[PackedTexts] = []

    def take() -> None:
        for texts in Prefetcher(read(*files), readers).documents(Encoder(small_model.tokenizer), Tally()):
            taken.append(texts)

    with pytest.raises(HeadscopeError, match=r"line 3 of .*1\.jsonl.*--on-error skip"):
        take()
    assert {texts.document for texts in taken} == {"a", "b", "b#2", "c", "d", "e"}


def test_readers_need_a_corpus_of_files(files: list[Path]) -> None:
    assert not Prefetcher.can(Corpus.of(list(read("sampler"))), 2)
    assert not Prefetcher.can(read(*files), 0)
    assert Prefetcher.can(read(*files), 1)
    assert Prefetcher.can(read(files[0]), 2)


def test_readers_are_the_default_only_with_a_gpu(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert Prefetcher.usual(read(*files), "cuda") == 0, "too few texts to be worth starting processes"
    monkeypatch.setattr("headscope.engine.prefetch.LEAST", 1)
    assert [Prefetcher.usual(read(*files), device) for device in ("cpu", "cuda")] == [0, 8]
    assert Prefetcher.usual(read(files[0]), "cuda") == 8
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert Prefetcher.usual(read(*files), "cuda") == 0


def test_a_file_that_changes_while_it_is_read_is_refused(small_model: Model, files: list[Path], tmp_path: Path) -> None:
    paths = [tmp_path / path.name for path in files[:2]]
    for path, source in zip(paths, (files[0], files[3]), strict=True):
        path.write_bytes(source.read_bytes())
    documents = Prefetcher(read(*paths), 1).documents(Encoder(small_model.tokenizer), Tally())
    assert next(documents).document == "a"
    changed = tmp_path / "changed"
    changed.write_text('{"id": "z", "text": "It is another."}\n', encoding="utf-8")
    changed.replace(paths[1])  # in one step: the reader must not see a half-written file
    with pytest.raises(HeadscopeError, match=r"1\.jsonl: the file has changed while it was being read"):
        list(documents)
