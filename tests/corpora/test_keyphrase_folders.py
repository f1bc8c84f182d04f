"""Folders of texts and keyphrases in the formats of KPCrowd, Inspec and SemEval-2017 (brat)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from pathlib import Path

import pytest

from headscope.corpora import read
from headscope.corpora.tags import phrase_tags
from headscope.errors import CorpusError, HeadscopeError


def folder(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into a folder and return the folder."""
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_texts_and_keys_may_be_in_separate_folders(tmp_path: Path) -> None:
    """KPCrowd has one phrase per line, a byte order mark and Windows line ends."""
    kpcrowd = {
        "docsutf8/sports-2.txt": "\ufeffThe café won.\r\n\r\nA Big Game ended.\r\n",
        "keys/sports-2.key": "\ufeffbig game\r\n\r\n  café  \r\nbig game\r\n",
        "docsutf8/art-10.txt": "Nothing here.",
        "keys/art-10.key": "museum\n",
    }
    corpus = read(folder(tmp_path / "kp", kpcrowd))
    assert corpus.format == "keyphrases"
    first, second = corpus
    assert (first.id, first.keyphrases) == ("art-10", ("museum",))
    assert (second.id, second.keyphrases) == ("sports-2", ("big game", "café"))
    assert phrase_tags(second) == ["O", "B", "O", "O", "B", "I", "O"]
    assert [sentence.paragraph for sentence in second.sentences] == [0, 1]
    assert not corpus.skipped
    assert corpus.layers({"keyphrases"}) == {"keyphrases"}


def test_semicolons_separate_the_phrases_of_inspec(tmp_path: Path) -> None:
    """A phrase may continue on the next line. If a text has two files of keys, the uncontrolled one is read."""
    inspec = {
        "7.abstr": "\tFuzzy\n sets\n Logic.",
        "7.uncontr": "\tfuzzy\n  sets; logic;",
        "7.contr": "fuzzy set theory",
        "8.txt": "Planes.",
        "8.contr": "planes; aircraft",
    }
    corpus = read(folder(tmp_path / "inspec", inspec))
    assert {one.id: one.keyphrases for one in corpus} == {"7": ("fuzzy sets", "logic"), "8": ("planes", "aircraft")}
    assert corpus.skipped.lines() == ["1 second files of keys of a text skipped (.contr) (first: 7.contr)"]


def test_missing_and_empty_files_are_reported(tmp_path: Path) -> None:
    files = {"a.txt": "One.", "a.key": "one", "b.txt": "Two.", "b.key": " \n", "c.txt": "Three.", "z.key": "four", "notes.md": "x"}
    corpus = read(folder(tmp_path / "some", files))
    assert {one.id: one.keyphrases for one in corpus} == {"a": ("one",), "b": (), "c": ()}
    assert corpus.skipped.lines() == [
        "1 files of keys without a text skipped (first: z.key)",
        "1 texts whose file of keys is empty (read without keyphrases) (first: b.key)",
        "1 texts without a file of keys (read without keyphrases) (first: c.txt)",
    ]


BRAT = {
    "S1.txt": "Iron shows oxidation\nof steel and of zinc.",
    "S1.ann": "T1\tProcess 11 20\toxidation\nT2\tMaterial 11 20;24 29\toxidation steel\nT3\tMaterial 24 29\tsteel\n"
    "*\tSynonym-of T1 T3\nR1\tHyponym-of Arg1:T1 Arg2:T3\nT4\tTask 11 29\toxidation of steel\n#1\tNote T1\thm\n",
    "S2.txt": "Nothing to say.",
    "S2.ann": "",
}


def test_brat_annotation_is_read_as_keyphrases(tmp_path: Path) -> None:
    corpus = read(folder(tmp_path / "semeval", BRAT))
    assert corpus.format == "brat"
    first, second = corpus
    assert (first.id, first.keyphrases) == ("S1", ("oxidation", "steel", "oxidation of steel"))
    assert phrase_tags(first) == ["O", "O", "B", "I", "I", "O", "O", "O"]
    assert second.keyphrases == ()
    assert corpus.skipped.lines() == [
        "1 phrases with other words in between skipped (first: line 2 of S1.ann)",
        "1 texts whose file of keys is empty (read without keyphrases) (first: S2.ann)",
    ]


@pytest.mark.parametrize("text", ["\ufeffa b\r\nsteel", "a b\r\nsteel", "\ufeffa b\nsteel", "a b\nsteel"])
@pytest.mark.parametrize("place", ["4 9", "5 10", "1 6"])
def test_offsets_may_or_may_not_count_byte_order_marks_and_line_ends(tmp_path: Path, text: str, place: str) -> None:
    right = {"4 9": True, "5 10": text != "a b\nsteel", "1 6": False}[place]
    corpus = read(folder(tmp_path / "x", {"a.txt": text, "a.ann": f"T1\tM {place}\tsteel\n"}))
    assert [one.keyphrases for one in corpus] == [("steel",)]
    assert bool(corpus.skipped) != right


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("T2\tTask 0 4\tbrass", r"line 2 of .*S1\.ann: the text S1\.txt does not contain 'brass'\. Write the phrase as in the text, or"),
        ("T2\tTask 4\tIron", r"line 2 of .*S1\.ann: 'T2\\tTask 4\\tIron' marks no phrase\. Write T1, a tab"),
        ("T2\tTask 0 4", "marks no phrase"),
        ("T2\tTask 4 4\tIron", "a phrase from 4 to 4"),
        (b"T2\tTask 0 4\tIr\xffon", "byte 0xff at position 15 is not UTF-8. Save the file as UTF-8"),
    ],
)
def test_a_faulty_phrase_is_refused_or_skipped(tmp_path: Path, line: str | bytes, said: str) -> None:
    first = b"T1\tMaterial 0 4\tIron\n"
    files: dict[str, str | bytes] = {**BRAT, "S1.ann": first + (line if isinstance(line, bytes) else line.encode())}
    path = folder(tmp_path / "x", files)
    with pytest.raises(CorpusError, match=said):
        list(read(path))
    corpus = read(path, on_error="skip")
    assert next(iter(corpus)).keyphrases == ("Iron",)
    assert corpus.skipped.counts.total() == 1


def test_faulty_texts_and_keys_are_refused_or_skipped(tmp_path: Path) -> None:
    path = folder(tmp_path / "x", {"a.txt": "One.", "a.key": b"one\ntw\xfco\n", "b.txt": b"", "b.key": "x"})
    with pytest.raises(CorpusError, match=r"line 2 of .*a\.key: byte 0xfc at position 3 is not UTF-8"):
        list(read(path))
    corpus = read(path, on_error="skip")
    assert [(one.id, one.keyphrases) for one in corpus] == [("a", ("one",))]
    assert corpus.skipped.lines() == [
        "1 lines skipped: not UTF-8 (first: line 2 of a.key)",
        "1 texts skipped: empty, or they cannot be read (first: b.txt)",
    ]
    (path / "a.key").write_text("one")
    with pytest.raises(CorpusError, match=r"b\.txt: the file is empty"):
        list(read(path))


def test_the_files_in_a_folder_determine_its_format(tmp_path: Path) -> None:
    for name, files in {"keys": {"a.key": "one"}, "empty": {}}.items():
        path = folder(tmp_path / name, files)
        path.mkdir(exist_ok=True)
        with pytest.raises(CorpusError, match="no file in this folder has a name that shows its format"):
            read(path)
    assert read(folder(tmp_path / "texts", {"a.txt": "One."})).format == "text"
    path = folder(tmp_path / "both", {"a.txt": "One.", "a.key": "one", "a.ann": "T1\tM 0 3\tOne\n"})
    assert read(path).format == "keyphrases"
    assert next(iter(read(path, format="brat"))).keyphrases == ("One",)
    assert [document.id for document in read(path, format="text")] == ["a.txt"]
    with pytest.raises(CorpusError, match="a file where a folder is needed"):
        list(read(path / "a.txt", format="keyphrases"))
    with pytest.raises(HeadscopeError, match="different formats"):
        read(path, path / "a.txt")


def test_the_hash_covers_the_contents_and_names_of_texts_and_keys(tmp_path: Path) -> None:
    files = {"a.txt": "One.", "b.txt": "Two.", "a.key": "one"}
    path = folder(tmp_path / "x", files)
    corpus = read(path)
    first = corpus.hash()
    assert list(corpus)
    assert corpus.share == 1
    assert read(folder(tmp_path / "y", {**files, "notes.md": "x"})).hash() == first
    packed: dict[str, str | bytes] = {"a.txt": "One.", "b.txt.xz": lzma.compress(b"Two."), "a.key": "one"}
    assert read(folder(tmp_path / "z", packed)).hash() == first
    assert [one.id for one in read(tmp_path / "z")] == ["a", "b"]
    (path / "a.key").write_text("two")
    second = read(path).hash()
    (path / "a.key").rename(path / "b.key")
    third = read(path).hash()
    assert len({first, second, third}) == 3
    assert read(path, tmp_path / "y").hash() not in (first, third)


@pytest.mark.parametrize(("name", "suffix"), [("kpcrowd", "key"), ("inspec-dev", "uncontr")])
def test_real_texts_are_the_same_in_a_folder_and_in_json_lines(data: Path, tmp_path: Path, name: str, suffix: str) -> None:
    """The corpora in their first published form, rebuilt from JSON lines, have the same words and phrases."""
    with lzma.open(data / "keyphrase" / f"{name}.jsonl.xz") as stream:
        lines = [json.loads(line) for line in stream]
    known = {line["id"]: line for line in lines}
    for line in lines:
        (tmp_path / f"{line['id']}.txt").write_text(line["text"], encoding="utf-8")
        separator = "\n" if suffix == "key" else ";\n\t"
        (tmp_path / f"{line['id']}.{suffix}").write_text(separator.join(line["keyphrases"]), encoding="utf-8")
    corpus, by_id = read(tmp_path), {one.id: one for one in read(data / "keyphrase" / f"{name}.jsonl.xz")}
    found = list(corpus)
    assert len(found) == len(known) == 500
    for document in found:
        other = by_id[document.id]
        assert document.sentences == other.sentences
        assert list(document.keyphrases) == list(dict.fromkeys(" ".join(one.split()) for one in other.keyphrases))
