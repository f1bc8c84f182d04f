"""Tokens per second from a file to encoded texts, in one process: `python benchmarks/reading.py`.

The files are plain text, JSON lines and CoNLL-U, generated from the sampler's sentences with some new words in every
document; with HEADSCOPE_DATA, EWT's training part is read too. Each is compared in the same rounds with the plain form,
which reads one line, row, word and text at a time. Both forms must give the same texts. Seconds are processor time, so
other programs on the machine affect them less.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from headscope.core.document import Sentence
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.models.load import load_tokenizer
from plain_reading import PlainEncoder, PlainTokenizer, one_by_one

NEW = 20  # one of this many words is new, as in running text
EWT = "ud/en_ewt-ud-train.conllu.xz"


def generated(folder: Path, documents: int) -> dict[str, Path]:
    """The generated files, by kind."""
    rng = random.Random(0)
    pool = [sentence for document in read("sampler") for sentence in document.sentences]
    chosen = [rng.sample(pool, 12) for _ in range(documents)]
    texts = [" ".join(_text(sentence, rng) for sentence in sentences) for sentences in chosen]
    rows = "".join(f"# newdoc id = d{number}\n" + "".join(_rows(one, rng) for one in some) for number, some in enumerate(chosen))
    contents = {
        "txt": "\n\n".join(texts) + "\n",
        "jsonl": "".join(json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate(texts)),
        "conllu": rows,
    }
    for kind, content in contents.items():
        (folder / f"generated.{kind}").write_text(content, encoding="utf-8")
    return {f".{kind}, generated": folder / f"generated.{kind}" for kind in contents}


def _form(form: str, rng: random.Random) -> str:
    return f"{form}{rng.choice('aeiou')}{rng.choice('lmnrst')}{rng.randrange(1000)}" if form.isalpha() and not rng.randrange(NEW) else form


def _text(sentence: Sentence, rng: random.Random) -> str:
    return " ".join(_form(form, rng) for form in sentence.text.split())


def _rows(sentence: Sentence, rng: random.Random) -> str:
    rows = (
        (str(number), _form(word.form, rng), word.lemma, word.upos, word.xpos, None, str(word.head), word.relation, None, None)
        for number, word in enumerate(sentence.words, start=1)
    )
    return "".join("\t".join(cell or "_" for cell in row) + "\n" for row in rows) + "\n"


def ewt(folder: Path) -> dict[str, Path]:
    """EWT as CoNLL-U and as plain text, unpacked, if HEADSCOPE_DATA has it."""
    source = Path(os.environ.get("HEADSCOPE_DATA", "")) / EWT
    if "HEADSCOPE_DATA" not in os.environ or not source.exists():
        return {}
    found = {f".{kind}, EWT": folder / f"ewt.{kind}" for kind in ("conllu", "txt")}
    found[".conllu, EWT"].write_bytes(lzma.decompress(source.read_bytes()))
    paragraphs = (" ".join(sentence.text for sentence in document.sentences) for document in read(found[".conllu, EWT"]))
    found[".txt, EWT"].write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    return found


def seconds(work: Callable[[], Iterator[Encoded]]) -> tuple[int, float]:
    """The number of tokens, and the processor time that they take."""
    gc.collect()
    began = time.process_time()
    tokens = sum(map(len, work()))
    return tokens, time.process_time() - began


def require_same(path: Path, ours: Encoder, plain: Encoder) -> None:
    """Raise an error unless both forms give the same texts."""
    with one_by_one():
        expected = [(text.id, text.ids.tolist(), text.word_of, text.annotation) for text in plain.texts(read(path), Tally())]
    if [(text.id, text.ids.tolist(), text.word_of, text.annotation) for text in ours.texts(read(path), Tally())] != expected:
        raise AssertionError(f"{path.name}: the two forms differ")


def main() -> None:
    """Print one row per file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2000, help="of each generated file [default: 2000]")
    parser.add_argument("--rounds", type=int, default=5, help="[default: 5]")
    asked = parser.parse_args()
    hf = load_tokenizer().hf
    plain = PlainEncoder(PlainTokenizer(hf))
    print("| file | tokens | tokens/s | reading alone, tokens/s | one by one, tokens/s | ratio |\n|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        for kind, path in {**generated(Path(name), asked.documents), **ewt(Path(name))}.items():
            require_same(path, Encoder(PlainTokenizer(hf)), plain)
            require_same(path, Encoder(load_tokenizer()), plain)
            rounds = []
            gc.freeze()
            for _ in range(asked.rounds):
                encoder = Encoder(load_tokenizer())  # with an empty cache of words
                tokens, ours = seconds(lambda encoder=encoder, path=path: encoder.texts(read(path), Tally()))  # type: ignore[misc]
                began = time.process_time()
                for _document in read(path):
                    pass
                reading = time.process_time() - began
                with one_by_one():
                    _, theirs = seconds(lambda path=path: plain.texts(read(path), Tally()))  # type: ignore[misc]
                rounds.append((ours, reading, theirs))
            one, read_only, other = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratios = sorted(theirs / ours for ours, _, theirs in rounds)
            print(
                f"| {kind} | {tokens:,} | {tokens / one:,.0f} | {tokens / read_only:,.0f} | {tokens / other:,.0f} "
                f"| {statistics.median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
