"""Unknown tokens are counted and reported by a warning; with too many of them, measures of words are refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.document import Document, Sentence, Word
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoder
from headscope.encoding.tokenizer import Tokenizer
from headscope.engine.spec import make_spec
from headscope.errors import HeadscopeWarning, RunError
from headscope.models.model import Model
from headscope.results import counts as result_counts
from headscope.results.counts import Counts, count
from headscope.results.folder import Folder
from headscope.runs.estimate import plan_run
from helpers.families import FAMILIES

QUICK: dict[str, Any] = {"replicates": 0, "gallery": 0}
WORDS = {"entropy": {"level": "word"}}
REFUSED = "4 of the 10 tokens (40.0%) are unknown to the tokenizer of small: too many to measure words (entropy)"
WARNED = "1 of the 20 tokens (5.0%) are unknown to the tokenizer of small."


def texts(*sizes: tuple[int, int]) -> Corpus:
    """One document per pair of numbers: that many words of one token that the embedded tokenizer contains, then that
    many unknown words.
    """
    words = [(*(Word("the") for _ in range(known)), *(Word("猫") for _ in range(not_known))) for known, not_known in sizes]
    return Corpus.of(Document(f"d{number}", (Sentence(own),)) for number, own in enumerate(words))


def test_a_few_unknown_tokens_are_counted_and_reported_by_a_warning(small_folder: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("the " * 12 + "猫" + " the" * 7, encoding="utf-8")
    runner, out = CliRunner(), str(tmp_path / "run")
    done = runner.invoke(app, ["run", "--model", str(small_folder), "--corpus", str(corpus), "--measures", "entropy", "--out", out])
    assert "unknown tokens: 1 of 20 (5.0%)" in done.output
    assert f"warning: {WARNED}" in done.output
    run = hs.open_run(out)
    assert run.results.manifest["unknown_tokens"] == {"n": 1, "of": 20, "share": 0.05}
    assert run.results.manifest["readings"][0]["unknown_tokens"] == {"n": 1, "of": 20, "share": 0.05}
    assert f"warning: {WARNED}" in str(run)
    page = run.report().read_text(encoding="utf-8")
    assert f"<b>Warning.</b> {WARNED}" in page
    assert "1 of 20 tokens of words (5.0 %)" in page
    stats = runner.invoke(app, ["corpus", "stats", str(corpus), "--model", str(small_folder)]).output
    assert "unknown tokens  1 of 20 (5.0%)" in stats
    quiet = runner.invoke(
        app, ["run", "--model", str(small_folder), "--corpus", str(corpus), "--out", out, "--overwrite", "--gallery", "0", "-q"]
    )
    assert quiet.stderr.startswith(f"headscope: warning: {WARNED}")
    assert not quiet.stdout
    assert f"warning: 1 of the 20 tokens (5.0%) are unknown to the tokenizer of {small_folder}." in stats


@pytest.mark.parametrize(("sizes", "warns"), [([(49, 1)], False), ([(30, 0), (18, 1)], True)])
def test_a_warning_is_issued_above_two_per_cent_of_unknown_tokens(
    small_model: Model, sizes: Sequence[tuple[int, int]], warns: bool
) -> None:
    counts = count(texts(*sizes), Encoder(small_model.tokenizer))
    assert bool(result_counts.warning(counts, "small")) == warns


def test_measures_of_words_are_refused_above_thirty_per_cent(small_model: Model, tmp_path: Path) -> None:
    with pytest.warns(HeadscopeWarning, match="3 of the 10 tokens"):
        hs.run(small_model, texts((5, 0), (2, 3)), WORDS, **QUICK)
    with pytest.raises(RunError) as refused:
        hs.run(small_model, texts((5, 0), (1, 4)), WORDS, tmp_path / "run", **QUICK)
    assert refused.value.problem == REFUSED
    assert "omit entropy" in refused.value.remedy
    with pytest.raises(RunError, match="4 of the 10 tokens"):
        plan_run(make_spec({"measures": WORDS}), model=small_model, corpus=texts((5, 0), (1, 4)), tried=0)
    with pytest.warns(HeadscopeWarning, match="4 of the 10 tokens"):
        tokens = hs.run(small_model, texts((5, 0), (1, 4)), ["entropy"], **QUICK)
    assert set(tokens["entropy"].table.where(quantity="entropy")["n"]) == {2}, "measures of tokens are not refused"


def test_a_refused_run_is_resumed_with_allow_unknown(small_model: Model, tmp_path: Path) -> None:
    """The setting changes no number, so it is not part of the identity or the signature."""
    corpus, out = texts((5, 0), (1, 4)), tmp_path / "run"
    with pytest.raises(RunError):
        hs.run(small_model, corpus, WORDS, out, **QUICK, shard_tokens=1)
    with pytest.warns(HeadscopeWarning):
        resumed = hs.run(small_model, corpus, WORDS, out, **QUICK, shard_tokens=1, allow_unknown=True, resume=True)
    assert resumed.results.manifest["counts"]["resumed_shards"] == 2
    assert "allow_unknown" not in resumed.results.manifest["identity"]["settings"]
    assert "allow_unknown" not in resumed.signature


def test_a_run_of_a_version_without_allow_unknown_can_be_rerun(small_model: Model, tmp_path: Path) -> None:
    corpus, out = texts((5, 0), (1, 4)), tmp_path / "run"
    with pytest.warns(HeadscopeWarning):
        hs.run(small_model, corpus, WORDS, out, **QUICK, allow_unknown=True)
    folder = Folder(out)
    manifest = {name: value for name, value in folder.read_manifest().items() if name != "sha256"}
    del manifest["settings"]["allow_unknown"]
    folder.write_manifest(manifest)
    assert not hs.rerun(out, corpus=corpus, model=small_model).same.differences


def test_a_run_is_refused_after_the_same_text_for_every_size_of_shards(small_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run does not wait for the rest of the corpus, with which the share would be 9 %."""
    monkeypatch.setattr(result_counts, "ENOUGH", 20)
    corpus = texts((9, 0), (2, 8), (0, 2), *[(10, 0)] * 9)
    for shard_tokens in (1, 15, 10_000):
        with pytest.raises(RunError, match=r"10 of the first 21 tokens \(47.6%\)"):
            hs.run(small_model, corpus, WORDS, shard_tokens=shard_tokens, **QUICK)


@pytest.mark.parametrize(
    ("family", "tokens"),
    [("wordpiece", (2, 3)), ("gpt2", (0, None)), ("roberta", (0, None)), ("t5", (2, None)), ("xlm-r", (2, None))],
)
def test_unknown_tokens_of_each_family_of_tokenizers_are_counted(family: str, tokens: tuple[int, int | None]) -> None:
    """Two words of Japanese and one of English; tokenizers of bytes have no unknown tokens."""
    corpus = Corpus.of([Document("d", (Sentence((Word("cat"), Word("猫"), Word("犬"))),))])
    counts = count(corpus, Encoder(Tokenizer(FAMILIES[family]())))
    assert counts.unknown == tokens[0]
    assert tokens[1] is None or counts.word_tokens == tokens[1]


def test_the_unknown_token_is_found_if_the_tokenizer_does_not_name_it() -> None:
    hidden = FAMILIES["t5"]()
    named = Tokenizer(hidden).unknown
    hidden.unk_token = None
    assert named == Tokenizer(hidden).unknown == {hidden.convert_tokens_to_ids("<unk>")}


def test_unknown_tokens_of_the_target_of_an_encoder_decoder_are_counted(small_model: Model) -> None:
    """The decoder reads its text shifted by one. It reads all words, because the last token, which it does not read, is
    [SEP].
    """
    paragraphs = Sentence((Word("the"),)), Sentence((Word("猫"), Word("the")), paragraph=1)
    counts = count(Corpus.of([Document("d", paragraphs)]), Encoder(small_model.tokenizer, "pair", decoder_start=2))
    assert (counts.unknown, counts.word_tokens, counts.tokens) == (1, 3, 3)


def test_a_study_warns_of_unknown_tokens() -> None:
    with pytest.warns(HeadscopeWarning, match="1 of the 20 tokens"):
        study = hs.ablate("mini", texts((19, 1)), parts=["layers"], limit=1, replicates=0)
    assert study.results.manifest["unknown_tokens"]["share"] == 0.05
    assert str(study).startswith("warning: 1 of the 20 tokens")


def test_twins_warn_of_unknown_tokens_of_both_models(small_model: Model) -> None:
    with pytest.warns(HeadscopeWarning, match="1 of the 20 tokens") as issued:
        found = hs.twins(small_model, small_model, texts((9, 1), (10, 0)), replicates=0, control=False)
    assert len(issued) == len(found.warnings) == 2


def test_the_share_of_unknown_tokens_is_0_without_tokens() -> None:
    assert Counts().unknown_share == 0
