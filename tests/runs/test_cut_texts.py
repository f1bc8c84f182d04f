"""Truncated texts and the way documents were formed are reported wherever a finding is stated."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.texts import TRUNCATED, Encoder
from headscope.results.notes import cut_sentence
from headscope.studies.picking import picked
from helpers.families import tokenizer
from helpers.marked import document

# Word = token:     0    1      2     3    4    5       6     7
LONG = document("[A he ] saw [B her ] . [A he ] left [B her ] .", "long")
SHORT = document("[A he ] saw [A him ] .", "short")
CUT = "1 of 2 documents were cut at 7 tokens: only 9 of 12 words and 5 of 6 mentions were read."


def test_with_a_limit_only_texts_that_were_read_are_counted(tmp_path: Path) -> None:
    """Twelve documents, each with one multi-word token; every second document is too long. Five are drawn, and only
    these are counted.
    """
    path = tmp_path / "x.conllu"
    path.write_text(
        "".join(
            f"# newdoc id = d{n}\n1-2\tcats\t{empty}\n"
            + "".join(f"{word}\tcat\tcat\tNOUN\t_\t_\t{word - 1}\tx\t_\t_\n" for word in range(1, 8 if n % 2 else 4))
            + "\n"
            for n, empty in enumerate(["\t".join("_" * 8)] * 12)
        )
    )
    corpus, tally = read(path), Tally()
    tally.add("from before")
    encoder = Encoder(tokenizer("wordpiece"), max_length=7, overlong="truncate")
    found = [text.document for text in picked(encoder.texts(corpus, tally), 5, tally=tally, corpus=corpus)]
    long = [name for name in found if int(name[1:]) % 2]
    assert len(found) == 5
    assert 0 < len(long) < 5
    assert tally.counts == {"from before": 1, TRUNCATED: len(long), "words cut off at the end": 2 * len(long)}
    assert tally.first[TRUNCATED] == long[0]
    assert [line.split(" (")[0] for line in corpus.skipped.lines()] == ["5 multi-word tokens"]
    all_of = Tally()
    assert len(list(picked(encoder.texts(corpus, all_of), None, tally=all_of, corpus=corpus))) == 12
    assert all_of.counts[TRUNCATED] == 6


def test_truncated_words_and_mentions_are_reported_with_the_finding(small_folder: Path, tmp_path: Path) -> None:
    """Seven tokens are [CLS], five words and [SEP]: `left her .` is cut off, and one mention with it."""
    out = tmp_path / "run"
    run = hs.run(hs.load(small_folder), Corpus.of([LONG, SHORT]), {"coreference": {"least": 1}}, out, max_length=7, replicates=0, gallery=0)
    (reading,) = run.results.manifest["readings"]
    assert reading["cut"] == {"texts": 1, "words": 3, "mentions": 1}
    assert run.results.manifest["dropped"] == [
        "1 mentions cut off at the end (first: long)",
        "1 overlong texts truncated (first: long)",
        "3 words cut off at the end (first: long)",
    ]
    runner = CliRunner()
    for table in ([], ["coreference"], ["coreference_best"], ["coreference_counts"]):
        assert CUT in runner.invoke(app, ["show", str(out), *table]).output, table
    page = run.report().read_text(encoding="utf-8")
    assert page.count(CUT) == 2, "once in the summary and once in the list of best heads"


def test_the_sentence_about_cuts_counts_words_and_mentions_and_is_none_without_cuts(small_folder: Path) -> None:
    loaded = hs.load(small_folder)
    every = hs.run(loaded, Corpus.of([LONG]), {"coreference": {"least": 1}}, max_length=7, replicates=0, gallery=0).results
    assert cut_sentence(every, "coreference") == "1 document was cut at 7 tokens: only 5 of 8 words and 3 of 4 mentions were read."
    whole = hs.run(loaded, Corpus.of([LONG]), {"coreference": {"least": 1}, "entropy": {}}, replicates=0, gallery=0).results
    assert cut_sentence(whole, "coreference") is cut_sentence(whole, "entropy") is None


def test_only_sentences_that_were_read_are_counted_as_separate_documents(small_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.conllu"
    path.write_text("\n\n".join(f"1\tthe\t_\t_\t_\t_\t0\troot\t_\t_\n2\tcat{n}\t_\t_\t_\t_\t1\tdep\t_\t_" for n in range(5)) + "\n\n")
    run = hs.run(hs.load(small_folder), path, ["entropy"], limit=3, replicates=0, gallery=0)
    assert run.results.manifest["read"] == ["3 sentences read as separate documents: the file has no # newdoc (first: line 1 of c.conllu)"]
    assert run.results.manifest["dropped"] == []
    stats = CliRunner().invoke(app, ["corpus", "stats", str(path)]).output
    assert "read  5 sentences read as separate documents" in stats
