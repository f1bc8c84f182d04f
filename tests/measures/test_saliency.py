"""Saliency from whole runs, against a plain loop over texts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2Config,
    GPT2LMHeadModel,
)

import headscope as hs
from headscope.core.batch import Slope
from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.engine.shards import encoder_for
from headscope.engine.spec import make_spec
from headscope.errors import EncodingError, ModelError, RunError
from headscope.models.model import Model
from helpers.families import FAMILIES

TEXTS = ["The cat sat on a mat .", "A dog , the cats .", "The dog sat", "On a mat the cat and a dog sat , the cat sat ."]
LABELS = ["1", "LABEL_0", "2", "label_1"]
CORPUS = Corpus.of(Document(f"d{n}", (Sentence(tuple(map(Word, text.split()))),)) for n, text in enumerate(TEXTS))
Values = dict[tuple[int, int, str], tuple[float, int]]


def saved(folder: Path, kind: Any, **sizes: Any) -> Path:
    """Save a small random model with its prediction head and its tokenizer, and return the folder."""
    tokens = FAMILIES["wordpiece"]()
    torch.manual_seed(0)
    shape = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20, "initializer_range": 0.5}
    kind(BertConfig(vocab_size=len(tokens), **shape, **sizes)).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def masked_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "masked", BertForMaskedLM)


@pytest.fixture(scope="module")
def masked_bert(masked_folder: Path) -> Model:
    return hs.load(masked_folder, device="cpu", head=True)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "classes", BertForSequenceClassification, num_labels=3)


def group(piece: str) -> str:
    return {"[SEP]": "sep", "[CLS]": "cls", ".": "punct", ",": "punct"}.get(piece, "other")


def by_hand(model: Model, corpus: Corpus, draws: int = 1, seed: int = 0) -> Values:
    """Return by layer, head and quantity: the mean over texts of the mean over all rows and the tokens of a group, and
    the number of texts.
    """
    means: dict[tuple[int, int, str], list[float]] = defaultdict(list)
    spec = make_spec({}).resolved(corpus.pairs)
    for text in encoder_for(spec, model.tokenizer, None, tags=model.tagging).texts(corpus, Tally()):
        found: dict[int, torch.Tensor] = {}
        for draw in range(draws):

            def take(index: int, sizes: torch.Tensor, seen: object, found: dict[int, torch.Tensor] = found) -> None:
                found[index] = found.get(index, torch.zeros(())) + sizes[0] / draws

            model.differentiate([text], Slope(draws=draws), f"{seed}/{draw}", take, frozenset(range(len(model.sites))))
        for site, sizes in found.items():
            for head, size in enumerate(sizes.double().numpy()):
                for name in ("sep", "cls", "punct", "other"):
                    columns = [n for n, piece in enumerate(text.pieces) if group(piece) == name]
                    if columns:
                        means[site + 1, head + 1, f"to_{name}"].append(size[:, columns].mean())
    return {place: (float(np.mean(one)), len(one)) for place, one in means.items()}


def values(run: hs.Run) -> Values:
    table = run["saliency"].table
    columns = (table[name] for name in ("layer", "head", "quantity", "value", "n"))
    return {(layer, head, quantity): (value, n) for layer, head, quantity, value, n in zip(*columns, strict=True)}


def assert_same(found: Mapping[Any, tuple[float, int]], expected: Mapping[Any, tuple[float, int]]) -> None:
    assert set(found) == set(expected)
    for place, (value, n) in expected.items():
        assert found[place][0] == pytest.approx(value, rel=2e-4), place
        assert found[place][1] == n, place


def run_of(model: Model | Path, corpus: Any = CORPUS, options: Mapping[str, Any] | None = None, **settings: Any) -> hs.Run:
    return hs.run(model, corpus, {"saliency": options or {}}, gallery=0, **{"replicates": 4, **settings})


def test_saliency_of_a_tagger_equals_a_loop_over_texts(tmp_path: Path) -> None:
    """The loss is that of the tags of keyphrases. A corpus without keyphrases is refused."""
    names = {0: "O", 1: "B", 2: "I"}
    folder = saved(tmp_path / "tags", BertForTokenClassification, id2label=names, label2id={name: n for n, name in names.items()})
    model = hs.load(folder, device="cpu", head=True)
    corpus = Corpus.of([replace(document, keyphrases=("the cat", "dogs")) for document in CORPUS])
    assert_same(values(run_of(model, corpus)), by_hand(model, corpus))
    with pytest.raises(RunError, match=r"tags words by keyphrases, and .* has none"):
        run_of(model, Corpus.of([replace(document, keyphrases=()) for document in CORPUS]))


def test_saliency_of_a_masked_model_equals_a_loop_over_texts(masked_bert: Model) -> None:
    run = run_of(masked_bert)
    expected = by_hand(masked_bert, CORPUS)
    assert_same(values(run), expected)
    assert {n for (_, _, name), (_, n) in expected.items() if name == "to_punct"} == {3}
    ratios = run.results["saliency_ratio"].where(quantity="sep_by_other")
    for layer, value in zip(ratios["layer"], ratios["value"], strict=True):
        sep, other = (np.mean([expected[layer, head, name][0] for head in (1, 2)]) for name in ("to_sep", "to_other"))
        assert value == pytest.approx(sep / other, rel=2e-4)


def test_two_draws_are_averaged_and_count_as_one_text(masked_bert: Model) -> None:
    both, first = values(run_of(masked_bert, options={"draws": 2})), values(run_of(masked_bert))
    assert_same(both, by_hand(masked_bert, CORPUS, draws=2))
    assert [n for _, n in both.values()] == [n for _, n in first.values()]
    assert any(abs(value - first[place][0]) > 0.01 * value for place, (value, _) in both.items())


@pytest.mark.usefixtures("workers_here")
def test_batches_shards_order_layers_and_processes_do_not_change_saliency(masked_bert: Model, masked_folder: Path) -> None:
    expected = values(run_of(masked_bert))
    assert_same(values(run_of(masked_bert, batch_tokens=1)), expected)
    assert_same(values(run_of(masked_bert, shard_tokens=1)), expected)
    assert_same(values(run_of(masked_bert, Corpus.of(list(CORPUS)[::-1]))), expected)
    assert_same(values(run_of(masked_bert, layers=[2])), {place: value for place, value in expected.items() if place[0] == 2})
    assert_same(values(run_of(masked_folder, engine="processes", workers=1, device="cpu")), expected)
    assert_same(values(run_of(masked_bert, seed=3)), by_hand(masked_bert, CORPUS, seed=3))


def labelled(path: Path, *entries: Mapping[str, object]) -> Path:
    path.write_text("\n".join(map(json.dumps, entries)))
    return path


def test_the_loss_of_a_classifier_is_that_of_the_label_of_each_text(classifier: Path, tmp_path: Path) -> None:
    path = labelled(tmp_path / "a.jsonl", *({"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)))
    run = run_of(classifier, path, {"draws": 3}, device="cpu")
    model = hs.load(classifier, device="cpu", head=True)
    assert_same(values(run), by_hand(model, hs.read(path)))
    other = labelled(tmp_path / "b.jsonl", *({"text": text, "label": 0} for text in TEXTS))
    assert abs(values(run_of(model, other))[1, 1, "to_sep"][0] - values(run)[1, 1, "to_sep"][0]) > 1e-6
    some = labelled(tmp_path / "c.jsonl", {"text": TEXTS[0], "label": 1}, {"text": TEXTS[1]})
    run = run_of(model, some)
    assert {n for _, n in values(run).values()} == {1}
    assert run.results.manifest["dropped"] == ["1 texts without a label, which have no gradients (first: c.jsonl#2/1)"]


def test_labels_of_pairs_of_sentences_are_used(classifier: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("sentence1\tsentence2\tlabel\nThe cat . A dog\tsat on a mat .\t2\n")
    assert_same(values(run_of(classifier, path, device="cpu")), by_hand(hs.load(classifier, device="cpu", head=True), hs.read(path)))


def test_unusable_labels_are_refused_before_the_run_starts(classifier: Path, tmp_path: Path) -> None:
    model = hs.load(classifier, device="cpu", head=True)
    out = tmp_path / "run"
    with pytest.raises(RunError, match=r"is a classifier, whose loss needs labels, and memory has none. Use a corpus with a label"):
        run_of(model, CORPUS, out=out)
    path = labelled(tmp_path / "a.jsonl", {"text": TEXTS[0], "label": 1}, {"text": TEXTS[1], "label": "awful"})
    with pytest.raises(ModelError, match="the label 'awful' is not one of the model's: LABEL_0, LABEL_1, LABEL_2"):
        run_of(model, path, out=out)
    assert not out.exists()
    assert run_of(model, path, limit=1, out=out).results.manifest["counts"]["texts"] == 1
    long = labelled(tmp_path / "b.jsonl", {"text": "The cat sat . A dog sat .", "label": 1})
    with pytest.raises(EncodingError, match=r"b.jsonl#1 is labelled '1' as a whole, but read in parts .*Use --unit document"):
        run_of(model, long)
    assert {n for _, n in values(run_of(model, long, unit="document")).values()} == {1}
    # Measures of attention need no labels.
    assert len(hs.run(model, CORPUS, ["tokens"], gallery=0, replicates=0)["tokens"].table)


def test_a_final_period_does_not_count_in_a_causal_model(tmp_path: Path) -> None:
    """Only the last row sees a final period, and its gradient is 0. `The dog sat .` therefore does not count; `A dog ,
    the cats .` counts with its comma, which three rows see.
    """
    tokens = FAMILIES["gpt2"]()
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokens), n_embd=12, n_layer=1, n_head=1, initializer_range=0.5)).save_pretrained(tmp_path)
    tokens.save_pretrained(tmp_path)
    model = hs.load(tmp_path, device="cpu", head=True)
    corpus = Corpus.of(Document(name, (Sentence(tuple(map(Word, name.split()))),)) for name in ("The dog sat .", "A dog , the cats ."))
    found = values(run_of(model, corpus))
    texts = list(encoder_for(make_spec({}).resolved(corpus.pairs), model.tokenizer, None).texts(corpus, Tally()))
    sizes: list[np.ndarray] = []
    model.differentiate([texts[1]], Slope(), "0/0", lambda _, size, seen: sizes.append(size[0, 0].double().numpy()), frozenset({0}))
    comma = next(place for place, piece in enumerate(texts[1].pieces) if "," in piece)
    value, n = found[1, 1, "to_punct"]
    assert n == 1
    assert value == pytest.approx(sizes[0][comma:-1, comma].mean(), rel=2e-4)
    assert sizes[0][-1].max() == 0 < value
