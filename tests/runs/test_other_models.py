"""The whole pipeline on small random models of other kinds: decoders, encoder-decoders, grouped heads, windows, sinks,
and models whose maps are read from their outputs.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_equal
from tiny import build_tiny

import headscope as hs
from headscope.core.document import Document, Mention, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoder
from headscope.engine.shards import encoder_for
from headscope.engine.spec import make_spec
from headscope.errors import ModelError
from headscope.models.model import Model
from headscope.report import body
from headscope.views.page import encode
from headscope.views.run import run_data
from helpers.architectures import BYPASS, build
from helpers.families import FAMILIES

TOKENIZERS = {"bert": "wordpiece", "gpt2": "gpt2", "t5": "t5"}
KINDS = {"layoutlm": {"encoder"}, "switch_transformers": {"encoder", "decoder", "cross"}, "falcon": {"decoder"}}
SENTENCES = ["The cat sat on a mat .", "A dog , the cats .", "The dog sat .", "On a mat the cat and a dog sat , the cat sat ."]
CORPUS = Corpus.of([Document(f"d{n}", (Sentence(tuple(map(Word, text.split()))),)) for n, text in enumerate(SENTENCES)])


def saved(tmp_path: Path, name: str, tokenizer: str) -> Path:
    """Save a small random model with as many embeddings as its tokenizer has tokens, and return the folder."""
    tokens = FAMILIES[tokenizer]()
    network = build(name, vocabulary=len(tokens))
    network.save_pretrained(tmp_path / name)
    tokens.save_pretrained(tmp_path / name)
    return tmp_path / name


def naive(model: Model, kind: str) -> tuple[list[np.ndarray], list[int]]:
    """The maps [layers, heads, rows, columns] of each text alone, from the eager attention of transformers, and the
    rows per text.
    """
    encoder = encoder_for(make_spec({}).resolved(pairs=False), model.tokenizer, model.decoder_start)
    maps, lengths = [], []
    model.network.set_attn_implementation("eager")
    for text in encoder.texts(CORPUS, Tally()):
        inputs = {"input_ids": torch.tensor(text.ids)[None]}
        if text.target is not None:
            inputs["decoder_input_ids"] = torch.tensor(text.target.ids)[None]
        out = model.network(**inputs, output_attentions=True)
        name = {"cross": "cross_attentions"}.get(kind, f"{kind}_attentions" if text.target is not None else "attentions")
        maps.append(torch.stack(getattr(out, name))[:, 0].double().numpy())
        lengths.append(maps[-1].shape[-2])
    return maps, lengths


@pytest.mark.parametrize(
    ("name", "tokenizer", "kinds"),
    [
        ("gpt2", "gpt2", ["decoder"]),
        ("llama", "llama-3", ["decoder"]),
        ("mistral", "llama-2", ["decoder"]),
        ("gpt_oss", "gpt2", ["decoder"]),
        ("modernbert", "wordpiece", ["encoder"]),
        ("albert", "wordpiece", ["encoder"]),
        ("deberta-v2", "wordpiece", ["encoder"]),
        ("mpnet", "wordpiece", ["encoder"]),
        ("t5", "t5", ["encoder", "decoder", "cross"]),
        ("bart", "roberta", ["encoder", "decoder", "cross"]),
    ],
)
def test_runs_of_every_kind_of_model_equal_eager_attention(tmp_path: Path, name: str, tokenizer: str, kinds: list[str]) -> None:
    model = hs.load(saved(tmp_path, name, tokenizer))
    assert model.capture == ("outputs" if name in BYPASS else "interface")
    run = hs.run(model, CORPUS, max_length=60, replicates=4, gallery=0)
    entropy = run["entropy"].table.where(quantity="entropy")
    assert list(dict.fromkeys(entropy["kind"])) == kinds
    for kind in kinds:
        maps, _ = naive(model, kind)
        rows = [a / a.sum(-1, keepdims=True) for a in maps]
        expected = np.mean([-(a * np.log(np.where(a > 0, a, 1))).sum(-1).mean(-1) for a in rows], axis=0)
        assert_allclose(entropy.where(kind=kind)["value"], expected.ravel(), rtol=1e-4, atol=1e-5)
        assert entropy.where(kind=kind)["n"][0] == len(SENTENCES)
        baseline = np.array(entropy.where(kind=kind)["baseline"])
        assert (expected.ravel() <= baseline + 1e-5).all(), "even attention has the largest entropy"
        if kind != "cross":
            previous = np.mean([np.diagonal(a, -1, -2, -1).sum(-1) / a.shape[-1] for a in maps], axis=0)
            assert_allclose(run["positions"].table.where(kind=kind, quantity="previous")["value"], previous.ravel(), atol=1e-5)
    if name == "gpt_oss":
        missing = np.mean([(1 - a.sum(-1)).mean(-1) for a in naive(model, "decoder")[0]], axis=0)
        assert_allclose(run["entropy"].table.where(quantity="sink_mass")["value"], missing.ravel(), atol=1e-5)
    run.report(tmp_path / "report.html")
    assert "nan" not in body(run.results).lower()
    assert not re.search(r"\b(NaN|Infinity)\b", encode(run_data(run.results)))


def test_the_baseline_of_even_attention_stays_inside_the_window(tmp_path: Path) -> None:
    """A window of 4: row i sees min(i, 4) tokens, so even attention has the entropy ln min(i, 4)."""
    model = hs.load(saved(tmp_path, "mistral", "llama-2"))
    run = hs.run(model, CORPUS, ["entropy"], max_length=60, replicates=0, gallery=0)
    _, lengths = naive(model, "decoder")
    expected = np.mean([np.mean([np.log(min(i, 4)) for i in range(1, n + 1)]) for n in lengths])
    assert_allclose(run["entropy"].table.where(quantity="entropy")["baseline"], expected, atol=1e-5)
    words = hs.run(model, CORPUS, {"entropy": {"level": "word"}}, max_length=60, replicates=0, gallery=0)
    assert max(words["entropy"].table.where(quantity="entropy")["baseline"]) <= expected + 1e-6


@pytest.mark.parametrize(("name", "tokenizer"), [("layoutlm", "wordpiece"), ("switch_transformers", "t5"), ("falcon", "gpt2")])
def test_relations_and_trees_with_other_masks_do_not_depend_on_batches(tmp_path: Path, name: str, tokenizer: str) -> None:
    """Batches of several texts. The mask of LayoutLM has one row for all queries; Falcon is causal, and is read from
    its outputs.
    """
    tokens = FAMILIES[tokenizer]()
    build_tiny(name, None, vocab_size=len(tokens)).save_pretrained(tmp_path)
    tokens.save_pretrained(tmp_path)
    model = hs.load(tmp_path)
    assert {site.kind for site in model.sites} == KINDS[name]
    texts = [
        Sentence(tuple(Word(word.form, head=min(i, 1), relation="dep") for i, word in enumerate(d.sentences[0].words))) for d in CORPUS
    ]
    trees = Corpus.of([Document(f"d{n}", (sentence,)) for n, sentence in enumerate(texts)])
    batched, single = (
        hs.run(model, trees, ["relations", "trees"], replicates=0, max_length=60, batch_tokens=size, gallery=0) for size in (2048, 1)
    )
    for measure in ("relations", "trees"):
        assert_allclose(batched[measure].table["value"], single[measure].table["value"], rtol=1e-5, atol=1e-6)
        assert_equal(batched[measure].table["n"], single[measure].table["n"])
        assert max(batched[measure].table["n"]) > 0


def test_an_opening_token_of_a_decoder_counts_as_cls(mini_decoder: Model, tmp_path: Path) -> None:
    without = hs.run(hs.load(saved(tmp_path, "gpt2", "gpt2")), CORPUS, ["tokens"], max_length=60, replicates=0, gallery=0)
    assert set(without["tokens"].table.where(quantity="to_cls")["n"]) == {0}
    with_bos = hs.run(mini_decoder, CORPUS, ["tokens"], max_length=60, replicates=0, gallery=0)
    assert set(with_bos["tokens"].table.where(quantity="to_cls")["n"]) == {len(SENTENCES)}


def test_a_tokenizer_too_large_for_its_model_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, "bert", "wordpiece")
    build("bert", vocabulary=12).save_pretrained(folder)
    with pytest.raises(ModelError, match="but the model has 12 embeddings"):
        hs.load(folder)


def test_the_two_parts_of_a_pair_are_inputs_of_encoder_and_decoder(tmp_path: Path) -> None:
    model = hs.load(saved(tmp_path, "t5", "t5"))
    sentences = [Sentence(tuple(map(Word, text.split())), paragraph=n) for n, text in enumerate(SENTENCES[:2])]
    document = Document("d", tuple(sentences))
    text = next(Encoder(model.tokenizer, "pair", decoder_start=model.decoder_start).texts([document], Tally()))
    assert text.target is not None
    assert [word.form for word in text.words] == SENTENCES[0].split()
    assert [word.form for word in text.target.words] == SENTENCES[1].split()
    assert text.annotation.positions == tuple(range(7))
    assert text.target.annotation.positions == tuple(range(7, 13))


@pytest.mark.parametrize(
    ("name", "tokenizer", "kinds"),
    [("bert", "wordpiece", ["encoder"]), ("gpt2", "gpt2", ["decoder"]), ("t5", "t5", ["encoder", "decoder"])],
)
def test_heads_are_scored_as_classifiers_on_every_kind_of_model(tmp_path: Path, name: str, tokenizer: str, kinds: list[str]) -> None:
    """Trees and mentions are scored for self-attention; cross attention is between two texts and has neither."""
    words = tuple(
        Word(form, head=2 if n != 1 else 0, relation="x" if n != 1 else "root", upos="NOUN")
        for n, form in enumerate(["The", "cat", "sat", "on", "a", "mat"])
    )
    mentions = (Mention("a", 0, 2), Mention("b", 4, 6), Mention("a", 3, 4))
    corpus = Corpus.of([Document(f"d{n}", (Sentence(words),), mentions) for n in range(12)])
    measures: dict[str, dict[str, object]] = {"relations": {"least": 1}, "trees": {"heads": ("1-1",)}, "coreference": {"least": 1}}
    run = hs.run(str(saved(tmp_path, name, tokenizer)), corpus, measures, replicates=10, max_length=48, gallery=0)
    for measure, n in (("relations", 60), ("coreference", 12)):
        best = run.results[f"{measure}_best"].where(label="all")
        assert list(best["kind"]) == kinds
        assert list(best["n"]) == [n] * len(kinds)
    assert set(run.results["trees"]["kind"]) == set(kinds)
    assert set(run.results["trees"]["n"]) == {60}
    assert list(run.results["trees_together"]["n"]) == [72, 60]
    # A decoder sees no later words: the governor "cat" can attend to one of its five dependents, "The".
    if kinds == ["decoder"]:
        heads = run.results["relations"].where(label="x")
        assert max(heads.where(direction="head-to-dep")["value"]) <= 1 / 5 + 1e-9


def test_a_decoder_without_a_closing_token_never_reads_the_last_word(tmp_path: Path) -> None:
    """Without a closing token, the shift removes the last word of the target, and its annotation."""
    forms = ["the", "cat", "sat", "."]
    words = tuple(Word(form, head=2 * (n != 1), relation="x" if n != 1 else "root", space_after=n != 2) for n, form in enumerate(forms))
    corpus = Corpus.of([Document(f"d{n}", (Sentence(words),)) for n in range(6)])
    run = hs.run(
        str(saved(tmp_path, "bart", "gpt2")),
        corpus,
        {"relations": {"least": 1, "punct": "include"}},
        replicates=5,
        max_length=48,
        gallery=0,
    )
    best = run.results["relations_best"].where(label="x")
    assert dict(zip(best["kind"], best["n"], strict=True)) == {"encoder": 18, "decoder": 12}
