from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headscope.corpora import FORMATS, check, read
from headscope.errors import HeadscopeError

SEEDS = {
    "conllu": (
        b"# newdoc id = d\n# global.Entity = GRP-etype\n# keyphrases = a; b\n1-2\tab\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
        b"1\ta\t_\tX\t_\t_\t2\tdep\t_\tEntity=(1-p(2-q)\n2\tb\t_\tX\t_\t_\t0\troot\t_\tEntity=1)\n2.1\t_\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
        b"# newpar\n# sent_id = s\n1\tc\t_\tX\t_\t_\t0\troot\t_\tEntity=(1-p)\n"
    ),
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
    "text": "One two. Three\nfour.\n\nFünf “six”\n".encode(),
    "jsonl": b'{"id": "x", "text": "One. Two", "keyphrases": ["One"]}\n{"text": "Three"}\n{"a": "x", "b": "y"}\n',
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
}
FOLDERS = {"keyphrases": ("a.txt", "a.uncontr"), "brat": ("a.txt", "a.ann")}  # files of a folder, parted by form feeds in the seed
SEEDS["keyphrases"] = "One two. Three\nfour “six”\n\ffour;\n\tone\n two; \xfcber\n".encode()
SEEDS["brat"] = b"One two. Three\r\nfour\n\fT1\tTask 0 3\tOne\nT2\tTask 4 7;16 20\ttwo four\n*\tSame T1 T2\n#1\tNote T1\tx\n"
SEEDS["conllx"], SEEDS["lines"], SEEDS["spr"] = SEEDS["conllu"], SEEDS["text"], SEEDS["spans"]
PIECES = [
    b"\n",
    b"\t",
    b" ",
    b"#",
    b"(",
    b")",
    b"|",
    b"-",
    b"1",
    b"9",
    b"_",
    b"=",
    b"\xff",
    b"\xe2\x80",
    b"\r",
    b"\x00",
    b"{",
    b'"',
    b",",
    b"\\ud800",
    b"*",
]

mutation = st.tuples(st.integers(0, 10_000), st.integers(0, 12), st.sampled_from([b"", *PIECES]) | st.binary(max_size=4))


def mutated(seed: bytes, mutations: list[tuple[int, int, bytes]]) -> bytes:
    for place, length, piece in mutations:
        start = place % (len(seed) + 1)
        seed = seed[:start] + piece + seed[start + length :]
    return seed


def test_every_format_is_tried() -> None:
    assert set(SEEDS) == set(FORMATS)


@pytest.mark.parametrize("format", SEEDS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutations=st.lists(mutation, min_size=1, max_size=6))
def test_only_clear_errors_escape(tmp_path: Path, format: str, mutations: list[tuple[int, int, bytes]]) -> None:
    path = tmp_path / "fuzz"
    content = mutated(SEEDS[format], mutations)
    if format in FOLDERS:
        path.mkdir(exist_ok=True)
        for name, part in zip(FOLDERS[format], (*content.split(b"\f", 1), b""), strict=False):
            (path / name).write_bytes(part)
    else:
        path.write_bytes(content)
    read_both: dict[str, int | None] = {}
    messages: list[str] = []
    modes: tuple[Literal["raise", "skip"], ...] = ("raise", "skip")
    for mode in modes:
        corpus = read(path, format=format, on_error=mode)
        try:
            documents = list(corpus)
        except HeadscopeError as error:
            read_both[mode] = None
            messages.append(str(error))
            continue
        read_both[mode] = len(documents)
        assert len({document.id for document in documents}) == len(documents)
        for document in documents:
            assert all(sentence.words for sentence in document.sentences)
            assert all(0 <= mention.start < mention.end <= len(document.words) for mention in document.mentions)
            spans = [span for edge in document.edges for span in (edge.first, edge.second) if span is not None]
            assert all(0 <= start < end <= len(document.words) for start, end in spans)
            assert all(edge.task and all(edge.labels) for edge in document.edges)
    assert all(str(path) in message for message in messages)
    # What can be read without skipping anything reads the same when faults are skipped.
    assert read_both["raise"] is None or read_both["raise"] == read_both["skip"]
    if format == "conllu":
        check([path])
