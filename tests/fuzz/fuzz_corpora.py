"""Readers of corpora: formats, compressed files, the validator, statistics, comparison of annotations, word vectors."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_engine import Target
from mutations import Mutator
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from headscope.cli.corpus_stats import print_stats
from headscope.corpora import FORMATS, Corpus, check, compare, read, read_annotation, stats
from headscope.corpora.checks import RULES
from headscope.encoding.vectors import read_vectors
from headscope.errors import CorpusError, HeadscopeError

CONLLU = """\
# newdoc id = d
# global.Entity = GRP-etype-minspan
# keyphrases = im Haus; b
# sent_id = s1
# text = Im Haus, with out Hunde.
1-2	Im	_	_	_	_	_	_	_	_
1	In	in	ADP	_	_	3	case	3:case	_
2	dem	der	DET	_	Case=Dat|PronType=Art	3	det	3:det	Entity=(1-place-2
3	Haus	Haus	NOUN	_	Number=Sing	0	root	0:root	Entity=1)|SpaceAfter=No
3.1	x	_	_	_	_	_	_	3:conj	_
4	,	,	PUNCT	_	_	7	punct	7:punct	_
5	with	without	ADP	_	Typo=Yes	7	case	7:case	_
6	out	_	X	_	_	5	goeswith	5:goeswith	_
7	Hunde	Hund	NOUN	_	Number=Plur	3	conj	3.1:obj|3:conj	Entity=(2-animal-1)|SpaceAfter=No
8	.	.	PUNCT	_	_	3	punct	3:punct	_

# newpar
# sent_id = s2
# text = Sie
1	Sie	sie	PRON	_	Case=Acc,Nom	0	root	0:root	Entity=(2-animal-1)

"""
SEEDS: dict[str, bytes] = {
    "conllu": CONLLU.encode(),
    "conll2012": (
        b"#begin document (d); part 000\nd 0 0 a NN (TOP(NP* - - - S * (1|(2)\nd 0 1 b NN *)) - - - S * 1)\n\n"
        b"d 0 0 c - - - - - - * (2)\n#end document\n"
        b"#begin document (e); part 000\ne 0 0 Ann - - - - - - (PER*) (ARG0*) (ARG1* -\n"
        b"e 0 1 saw - - see see.01 - - * (V*) *) -\ne 0 2 it - - go go.01 - - * (ARG1*) (V*) -\n#end document\n"
    ),
    "bio": b"-DOCSTART- -X- -X- O\n\nAnn NNP B-NP I-PER\nLee NNP I-NP I-PER\nran VBD B-VP O\n\n# id 1\nRome NNP B-NP B-LOC\n",
    "semeval": b'1\t"A <e1>dog</e1> bit an old <e2>man</e2>."\nCause-Effect(e1,e2)\nComment: x\n\n2\t"<e1>a</e1> <e2>b</e2>"\nOther\n',
    "spans": (
        b'{"text": "Ann ate ice", "targets": [{"span1": [1, 2], "span2": [2, 3], "label": "A1"}]}\n'
        b'{"id": 1, "text": "a b", "tokens": [["a"], ["b"]], "task": "t", "targets": [{"span1": [0, 2], "label": ["x", "y"]}]}\n'
    ),
    "spr": (
        b'{"text": "Ann ate ice", "targets": [{"span1": [1, 2], "span2": [2, 3], "ratings": {"awareness": 4.5, "volition": 2}, '
        b'"label": ["awareness"], "info": {}}]}\n'
    ),
    "passages": (
        b'{"passages": ["Ann lives in Rome.", "Bob lives in Oslo. Eve, too."], "gold": 1, "question": "Bob lives in", "answer": "Oslo"}\n'
        b'{"id": 7, "passages": ["a"], "gold": [0], "question": "b", "year": 1999}\n'
    ),
    "text": "One two. Three\nfour.\n\nFünf “six”\n".encode(),
    "jsonl": b'{"id": "x", "text": "One. Two", "keyphrases": ["One"]}\n{"text": "Three"}\n{"a": "x", "b": "y", "label": 1}\n',
    "csv": b'id,text,label\nx,"One, two. Three\n\nfour ""five""",good\n,six,\n',
    "tsv": b'sentence1\tsentence2\tgold_label\nOne "two\tthree.\tentailment\nfour\tfive\t-\n',
    "gap": (
        b"ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\n"
        b"x\tAnn met Eve. Her dog\tHer\t13\tAnn\t0\tTRUE\tEve\t8\tFALSE\n"
        b"y\tAnn met Eve. Her dog\tHer\t13\tAnn\t0\tFALSE\tEve\t8\tFALSE\n"
    ),
    "winobias": (
        b"#begin document (d/stereotype); part 000\nd 0 0 The - - - - - - * (1\nd 0 1 cook - - - - - - * 1)\nd 0 2 a - - - - - - * -\n"
        b"d 0 3 nurse - - - - - - * -\nd 0 4 he - - - - - - * (1)\n#end document\n"
    ),
    # The files of a folder, separated by form feeds.
    "keyphrases": "One two. Three\nfour “six”\n\ffour;\n\tone\n two; \xfcber\n".encode(),
    "brat": b"One two. Three\r\nfour\n\fT1\tTask 0 3\tOne\nT2\tTask 4 7;16 20\ttwo four\n*\tSame T1 T2\n#1\tNote T1\tx\n",
}


def _tables() -> dict[str, bytes]:
    """A table as Parquet and as an Arrow stream."""
    table = pa.table({"id": ["x", None], "text": ["One. Two", "Three"], "year": [1, 2], "keyphrases": [["One"], None]})
    parquet, stream = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    with pa.ipc.new_stream(stream, table.schema) as sink:
        sink.write_table(table)
    return {"parquet": parquet.getvalue(), "arrow": stream.getvalue()}


def _docbin() -> bytes:
    """Two Docs, one of them with a tree."""
    vocab = Vocab()
    parsed = Doc(vocab, words=["Dogs", "bark"], heads=[1, 1], deps=["nsubj", "ROOT"], pos=["NOUN", "VERB"])
    packed: bytes = DocBin(docs=[parsed, Doc(vocab, words=["One", "."])], store_user_data=True).to_bytes()
    return packed


SEEDS |= {**_tables(), "docbin": _docbin()}
SEEDS["conllx"], SEEDS["lines"] = SEEDS["conllu"], SEEDS["text"]
FOLDERS = {"keyphrases": ("a.txt", "a.uncontr"), "brat": ("a.txt", "a.ann")}
TOKENS: dict[str, tuple[bytes, ...]] = {
    "conllu": (
        *(
            b"Entity=",
            b"(1-place",
            b"1)",
            b"(e1[1/2]-x",
            b"# newdoc",
            b"# newpar",
            b"# global.Entity = eid",
            b"# text = ",
            b"# sent_id = s1",
            b"# sent_id = a-1",
            b"# sent_id = a-2",
            b"# sent_id = b.1",
        ),
        *(
            b"1-2",
            b"1.1",
            b"_",
            b"|",
            b"=",
            b"SpaceAfter=No",
            b"goeswith",
            b"punct",
            b"fixed",
            b"orphan",
            b"ExtPos=ADV",
            b"# keyphrases = ;",
        ),
    ),
    "conll2012": (b"#begin document", b"#end document", b"(1", b"1)", b"|", b"*", b"(NP*", b"(V*)", b"-", b"; part 001", b"()", b"(ARG0*)"),
    "bio": (b"-DOCSTART-", b"B-", b"I-PER", b"O", b"E-PER", b"S-", b"# "),
    "semeval": (b"<e1>", b"</e1>", b"<e2>", b"</e2>", b"(e1,e2)", b"Other", b'"', b"Comment:"),
    "spans": (b'"span1"', b"[1, 0]", b'"targets"', b'"label"', b"null", b'"tokens"', b"[[]]", b"true", b"{", b"}", b'"ratings"'),
    "passages": (b'"passages"', b'"gold"', b'"question"', b"[0, 1]", b"-1", b"[]", b"null", b'""', b"{", b"}"),
    "jsonl": (b'"text"', b'"a"', b'"b"', b'"keyphrases"', b"null", b"{", b"}", b"[", b"]", b'"', b"\\", b'"label": -1'),
    "csv": (b'"', b'""', b",", b"text", b"label", b"sentence1", b"id"),
    "tsv": (b"sentence", b"label", b'"', b"gold_label", b"-"),
    "gap": (b"TRUE", b"FALSE", b"Pronoun-offset", b"A-coref", b"Her"),
    "brat": (b"T1\tTask ", b";", b"R1\t", b"\f", b"0 3", b"3 0"),
    "keyphrases": (b";", b"\f", b"\n\n"),
}
TOKENS["conllx"] = TOKENS["conllu"]
TOKENS["spr"] = TOKENS["spans"]
TOKENS["winobias"] = TOKENS["conll2012"]
SUFFIX = {"conllu": ".conllu", "conllx": ".conll", "text": ".txt", "lines": ".txt", "semeval": ".txt", "bio": ".bio", "csv": ".csv"}
SUFFIX |= {
    "tsv": ".tsv",
    "jsonl": ".jsonl",
    "spans": ".jsonl",
    "passages": ".jsonl",
    "spr": ".json",
    "conll2012": ".gold_conll",
    "winobias": ".v4_gold_conll",
}
# Messages about a whole file; every other message must name a line.
WHOLE = (
    "the file is empty",
    "there is no document",
    "there is no text",
    "is not valid",
    "ends too early",
    "unpack",
    "does not show",
    "cannot be read as",
)
PLAIN = ("text", "lines")
Mode = Literal["raise", "skip"]
MODES: tuple[Mode, ...] = ("raise", "skip")


def write(format: str, data: bytes, folder: Path, suffix: str = "") -> Path:
    """Write the input to a file, or to a folder if the format needs one, and return the path."""
    path = folder / f"fuzz{suffix}"
    if format in FOLDERS:
        path.mkdir()
        for name, part in zip(FOLDERS[format], (*data.split(b"\f", 1), b""), strict=False):
            (path / name).write_bytes(part)
    else:
        path.write_bytes(data)
    return path


def documents_of(corpus: Corpus, path: Path) -> int | None:
    """Check every document of a corpus and return their number; None if the corpus is refused with the right place."""
    try:
        documents = list(corpus)
    except CorpusError as error:
        assert str(path) in str(error)
        assert error.line is not None or any(part in error.problem for part in WHOLE), f"the message names no line: {error}"
        return None
    assert len({document.id for document in documents}) == len(documents)
    for document in documents:
        assert document.sentences
        assert all(sentence.words for sentence in document.sentences)
        assert all(word.form for word in document.words)
        assert all(0 <= mention.start < mention.end <= len(document.words) for mention in document.mentions)
        spans = [span for edge in document.edges for span in (edge.first, edge.second) if span is not None]
        assert all(0 <= start < end <= len(document.words) for start, end in spans)
        assert all(edge.task and all(edge.labels) for edge in document.edges)
        "".join(word.form for word in document.words).encode()
    return len(documents)


def read_all(format: str, data: bytes, folder: Path) -> None:
    """Read a file of a known format in both modes. A file without errors must read the same in both."""
    path = write(format, data, folder)
    found = {mode: documents_of(read(path, format=format, on_error=mode), path) for mode in MODES}
    assert found["raise"] is None or found["raise"] == found["skip"]
    if found["skip"]:
        counted = stats(read(path, format=format, on_error="skip"))
        assert counted.documents == found["skip"]


def sniff(data: bytes, folder: Path) -> None:
    """Read a file whose format is guessed from its name and its first lines."""
    name, _, content = data.partition(b"\n")
    suffix = name.decode("utf-8", "replace").replace("/", "").replace("\x00", "")[:40]
    path = folder / f"fuzz{suffix}"
    path.write_bytes(content)
    corpus = read(path, on_error="skip")
    assert isinstance(corpus.pairs, bool)
    if documents_of(corpus, path):
        print_stats(corpus, None, every_label=False)
    corpus.hash()


def unpack(suffix: str, data: bytes, folder: Path) -> None:
    """Read a compressed file in both modes."""
    path = folder / f"fuzz.{suffix}"
    path.write_bytes(data)
    for mode in MODES:
        documents_of(read(path, on_error=mode), path)


def judge(data: bytes, folder: Path) -> None:
    """Check that the validator never raises, has consistent levels, and agrees with the reader on valid files."""
    path = folder / "fuzz.conllu"
    path.write_bytes(data)
    findings = check([path])
    lines = data.count(b"\n") + 1
    assert all(finding.rule in RULES and (finding.line is None or 1 <= finding.line <= lines) for finding in findings)
    assert [finding.line or 0 for finding in findings] == sorted(finding.line or 0 for finding in findings)
    assert all(len(str(finding)) < 3000 for finding in findings)
    for level in (1, 2):
        assert check([path], level) == [finding for finding in findings if finding.level <= level]
    # A file without findings up to level 2 can be read without an error.
    if all(finding.level == 3 or finding.note for finding in findings):
        assert all(sentence.words for document in read(path) for sentence in document.sentences)


def entities(data: bytes, folder: Path) -> None:
    """Read and validate coreference brackets, one value per word of a sentence."""
    values = data.replace(b"\t", b" ").replace(b"\r", b" ").split(b"\n")[:40]
    rows = [b"%d\tw\t_\tX\t_\t_\t%d\tdep\t_\tEntity=%s" % (number, number - 1, value) for number, value in enumerate(values, 1)]
    read_all("conllu", b"# global.Entity = GRP-etype\n" + b"\n".join(rows) + b"\n\n", folder)
    judge((folder / "fuzz").read_bytes(), folder)


def agree(data: bytes, folder: Path) -> None:
    """Compare a file with the file from which it was made, in both directions."""
    first, second = folder / "first.conllu", folder / "second.conllu"
    first.write_bytes(CONLLU.encode())
    second.write_bytes(data)
    for a, b in ((first, second), (second, first)):
        try:
            found = compare(read_annotation(a), read_annotation(b), replicates=2)
        except HeadscopeError as error:
            assert ".conllu" in str(error) or "annotation" in str(error)
            continue
        assert all(np.isnan(score.value) or -1 <= score.value <= 1 for score in found.scores)


def vectors(suffix: str, data: bytes, folder: Path) -> None:
    """Read word vectors and check their shapes and values."""
    path = folder / f"vectors{suffix}"
    path.write_bytes(data)
    try:
        found = read_vectors(path, {"cat", "dog", "the"})
    except CorpusError as error:
        assert str(path) in str(error)
        raise
    assert found.vectors.shape == (len(found.words), found.size)
    assert found.size
    assert np.isfinite(found.vectors).all()
    assert np.isfinite(found.first).all()


def mutate_content(pack: str) -> Callable[[Mutator, bytes], bytes]:
    """A function that mutates the content of a compressed file, so that the compressed data stay valid."""

    def shaped(mutator: Mutator, data: bytes) -> bytes:
        try:
            inside = gzip.decompress(data) if pack == "gz" else lzma.decompress(data)
        except (OSError, EOFError, zlib.error, lzma.LZMAError):
            inside = b""
        changed = mutator.mutated(inside[:5000], [CONLLU.encode()])
        if mutator.random.random() < 0.05:  # a small decompression bomb: a thousand times its size
            changed = mutator.random.choice((b"\n", b"a ", b"\x00", b"1\ta\t_\t_\t_\t_\t0\t_\t_\t_\n\n")) * 5_000
        return gzip.compress(changed, 1) if pack == "gz" else lzma.compress(changed, preset=0)

    return shaped


def npz(**arrays: object) -> bytes:
    """The bytes of an npz file with these arrays; objects are pickled."""
    file = io.BytesIO()
    np.savez(file, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    return file.getvalue()


def npz_shaped(mutator: Mutator, data: bytes) -> bytes:
    """An npz file in which one array has another type, shape, content or name."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception:
        return data
    if not arrays:
        return data
    chance = mutator.random
    name = chance.choice(list(arrays))
    array = arrays[name]
    ways = (
        lambda: array[..., None],
        lambda: (
            array.astype(chance.choice(["i8", "f2", "f4", "f8", "c8", "U5", "S3", "b1", "V4"])) if array.dtype.kind in "fiu" else array[:1]
        ),
        lambda: np.array([{"a": 1}, None], dtype=object),
        lambda: array.reshape(-1)[: chance.randrange(1 + array.size)],
        lambda: np.zeros((0, 3)),
        lambda: np.full(array.shape, chance.choice([np.nan, np.inf, -1, 1e300, 0])),
        lambda: np.asfortranarray(array).T,
        lambda: np.array("x" * 1000),
        lambda: np.zeros((1, 2), dtype=[("a", "f4"), ("b", "U2")]),
        lambda: np.array(["the", "\x00", "\ud800", "", "the"] * 3),
    )
    if chance.random() < 0.15:
        arrays[chance.choice(["attention", "words", "tokens", "roles", "vectors", "a/b", "../x"])] = arrays.pop(name)
    else:
        try:
            arrays[name] = chance.choice(ways)()
        except (ValueError, TypeError):
            return data
    return npz(**arrays)


def targets() -> list[Target]:
    """The targets of this module."""

    def format_target(format: str) -> Target:
        return Target(f"corpus/{format}", [SEEDS[format]], lambda data, folder: read_all(format, data, folder), TOKENS.get(format, ()))

    assert set(SEEDS) == set(FORMATS)
    named = [f"{SUFFIX[format]}\n".encode() + data for format, data in SEEDS.items() if format in SUFFIX]
    packs = {
        pack: [compress(data) for data in (CONLLU.encode(), SEEDS["text"])]
        for pack, compress in (("gz", gzip.compress), ("xz", lzma.compress))
    }
    marks = [b"(1-place\n(2-x(3)\n3)\n2)1)\n(1)", b"(e1[1/2]-person-2\ne1[1/2])\n(e1[2/2])"]
    glove = [b"cat 0.5 -1e-3 2\ndog 1 2 3\n", b"2 3\nthe 1 2 3\ncat 4 5 6\n"]
    words = [npz(words=np.array(["cat", "dog"]), vectors=np.ones((2, 3), np.float32))]
    return [
        *(format_target(format) for format in SEEDS),
        Target("corpus/by name", named, sniff, [token for tokens in TOKENS.values() for token in tokens] + [b".gz\n", b".xz\n"], share=2),
        *(
            Target(
                f"corpus/{pack}",
                packs[pack],
                partial(unpack, f"conllu.{pack}"),
                shaped=mutate_content(pack),
                share=0.3,
            )
            for pack in packs
        ),
        Target("corpus/check", [CONLLU.encode()], judge, TOKENS["conllu"], share=2),
        Target("corpus/entities", marks, entities, TOKENS["conllu"]),
        Target("corpus/compare", [CONLLU.encode()], agree, TOKENS["conllu"], share=0.5),
        Target("vectors/text", glove, lambda data, folder: vectors(".txt", data, folder), (b"cat", b" ", b"nan", b"1e39", b"inf")),
        Target("vectors/npz", words, lambda data, folder: vectors(".npz", data, folder), shaped=npz_shaped),
    ]
