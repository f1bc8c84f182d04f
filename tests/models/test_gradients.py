"""Gradients of the loss with respect to attention, compared with finite differences, for all kinds of language models
and for classifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)

import headscope as hs
from headscope.core.batch import WORD, Slope
from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded
from headscope.engine.shards import encoder_for
from headscope.engine.spec import make_spec
from headscope.errors import ModelError, RunError
from headscope.models import capture
from headscope.models.model import Model
from headscope.models.predictions import Predictions, class_number, classes, predictions
from helpers.families import FAMILIES

SENTENCES = ["The cat sat on a mat .", "A dog , the cats .", "The dog sat ."]
LABELS = ("good", "1", "BAD")  # the three classes below: by name, by number, and by name in another case
CORPUS = Corpus.of(
    Document(f"d{n}", (Sentence(tuple(map(Word, text.split()))),), label=label)
    for n, (text, label) in enumerate(zip(SENTENCES, LABELS, strict=True))
)
CLASSES: dict[str, Any] = {"id2label": {0: "bad", 1: "fair", 2: "good"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}
RIGHT = [2, 1, 0]  # the class numbers of LABELS
BERT = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
TINY: dict[str, tuple[str, Any, Any, dict[str, Any]]] = {
    "bert": ("wordpiece", BertForMaskedLM, BertConfig, BERT),
    "gpt2": ("gpt2", GPT2LMHeadModel, GPT2Config, {"n_embd": 12, "n_layer": 2, "n_head": 2}),
    "bert classes": ("wordpiece", BertForSequenceClassification, BertConfig, {**BERT, **CLASSES}),
    "distilbert classes": (
        "wordpiece",
        DistilBertForSequenceClassification,
        DistilBertConfig,
        {"dim": 12, "n_layers": 2, "n_heads": 2, "hidden_dim": 20, **CLASSES},
    ),
    # Its configuration has a padding token, and its tokenizer has none.
    "gpt2 classes": (
        "gpt2",
        GPT2ForSequenceClassification,
        GPT2Config,
        {"n_embd": 12, "n_layer": 2, "n_head": 2, "pad_token_id": 1, **CLASSES},
    ),
    "t5": ("t5", T5ForConditionalGeneration, T5Config, {"d_model": 12, "d_kv": 6, "num_layers": 2, "num_heads": 2, "d_ff": 20}),
}


def saved(folder: Path, name: str) -> Path:
    """Save a small random model with its head and tokenizer, and return the folder."""
    tokenizer, kind, config, sizes = TINY[name]
    tokens = FAMILIES[tokenizer]()
    torch.manual_seed(0)
    kind(config(vocab_size=len(tokens), initializer_range=0.5, **sizes)).save_pretrained(folder / name)
    tokens.save_pretrained(folder / name)
    return folder / name


@pytest.fixture(params=list(TINY))
def double_model(request: pytest.FixtureRequest, tmp_path: Path) -> Model:
    loaded = hs.load(saved(tmp_path, request.param), device="cpu", head=True)
    assert loaded.whole is not None
    loaded.whole.double()
    return loaded


def encoded(model: Model) -> list[Encoded]:
    encoder = encoder_for(make_spec({}).resolved(pairs=False), model.tokenizer, model.decoder_start)
    return list(encoder.texts(CORPUS, Tally()))


@contextmanager
def nudged(model: Model, site: int, head: int, query: int, key: int, by: float | torch.Tensor) -> Iterator[None]:
    """Within this context, the model adds `by` to one attention weight of the first text, after the softmax. The effect
    on the output is computed here, without headscope's gradients.
    """
    calls = 0

    def attention(eager: Callable[..., Any], module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        nonlocal calls
        output, weights = eager(module, *args, **kwargs)  # [text, query, head, d]
        if calls == site:
            value = args[2]
            output = output.clone()
            output[0, query, head] += by * value[0, head * value.shape[1] // weights.shape[1], key]
        calls += 1
        return output, None

    with capture.tapped(model.network, attention):
        yield


def predictions_of(model: Model, texts: list[Encoded], slope: Slope, key: str) -> Predictions:
    """The tokens or classes that the package makes the model predict."""
    assert model.whole is not None
    assert model.objective is not None
    if model.objective == "classes":
        return classes(texts, model.classes)
    return predictions(texts, model.objective, model.tokenizer.mask_id, model.whole.config.vocab_size, slope.share, key)


def loss_of(model: Model, texts: list[Encoded], slope: Slope, key: str) -> float:
    with torch.no_grad():
        return float(loss_tensor(model, texts, slope, key))


def loss_tensor(model: Model, texts: list[Encoded], slope: Slope, key: str) -> torch.Tensor:
    """The loss of the first text, computed from the logits of all positions."""
    assert model.whole is not None
    if model.objective == "classes":  # one text alone, without padding
        alone: torch.Tensor = model.whole(**model.inputs(texts[:1]), use_cache=False).logits
        return -alone.log_softmax(-1)[0, RIGHT[0]]
    targets = predictions_of(model, texts, slope, key)
    inputs = model.inputs(texts)
    for row, ids in enumerate(targets.ids):
        inputs["input_ids"][row, : len(ids)] = torch.from_numpy(ids)
    logs = model.whole(**inputs, use_cache=False).logits.log_softmax(-1)
    losses = torch.stack([-logs[0, p, label] for t, p, label in zip(targets.texts, targets.places, targets.labels, strict=True) if t == 0])
    return losses.mean() if slope.reduction == "mean" else losses.sum()


def gradients(model: Model, texts: list[Encoded], slope: Slope, key: str = "0/0") -> dict[int, torch.Tensor]:
    found: dict[int, torch.Tensor] = {}
    model.differentiate(texts, slope, key, lambda index, sizes, _: found.update({index: sizes.clone()}), frozenset(range(len(model.sites))))
    return found


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_gradients_equal_finite_differences(double_model: Model, reduction: Any) -> None:
    texts, slope = encoded(double_model), Slope(share=0.4, reduction=reduction)
    step = 1e-5
    found = gradients(double_model, texts, slope)
    assert len(found) == len(double_model.sites)
    rng = np.random.default_rng(0)
    seen = 0.0
    # The loss of a classifier is computed from the first text alone, without padding, so only the rows of that text are
    # compared.
    length = len(texts[0]) if double_model.objective == "classes" else None
    for site, sizes in found.items():
        for _ in range(6):
            head, query, key = (int(rng.integers(size)) for size in sizes[:, :, :length, :length].shape[1:])
            if double_model.encoder_decoder:
                # T5 normalises in float32, even if the model is float64: rounding would hide the effect of small steps.
                zero = torch.zeros((), dtype=torch.float64, requires_grad=True)
                with nudged(double_model, site, head, query, key, zero):
                    (derivative,) = torch.autograd.grad(loss_tensor(double_model, texts, slope, "0/0"), zero)
                expected = abs(float(derivative))
            else:
                losses = []
                for by in (step, -step):
                    with nudged(double_model, site, head, query, key, by):
                        losses.append(loss_of(double_model, texts, slope, "0/0"))
                expected = abs(losses[0] - losses[1]) / (2 * step)
            assert float(sizes[0, head, query, key]) == pytest.approx(expected, rel=1e-4, abs=1e-7)
            seen += expected
    assert seen > 1e-3, "all expected gradients are almost 0"


def test_rows_that_no_prediction_depends_on_have_gradient_0_and_are_masked(double_model: Model) -> None:
    """The last token of a decoder predicts nothing, and no later row attends to it: its row has gradient 0 and is
    masked out.
    """
    texts = encoded(double_model)
    sizes = gradients(double_model, texts, Slope())
    visible: dict[int, Any] = {}
    double_model.differentiate(
        texts, Slope(), "0/0", lambda index, _, seen: visible.update({index: seen}), frozenset(range(len(double_model.sites)))
    )
    for index, site in enumerate(double_model.sites):
        if site.kind == "encoder" or double_model.objective == "classes":
            assert visible[index] is None or visible[index].any(-1)[0, : len(texts[0])].all()
            continue
        for number, text in enumerate(texts):
            length = len(text.target or text)
            assert (sizes[index][number, :, length - 1] == 0).all()
            rows = visible[index][number].sum(-1)
            assert (rows[length - 1 :] == 0).all()
            assert rows[: length - 1].tolist() == (list(range(1, length)) if site.kind == "decoder" else [len(text)] * (length - 1))


def test_other_forms_of_saliency_agree_with_the_plain_gradients(double_model: Model) -> None:
    """`times_weight` equals the weights times the plain gradients. `through_softmax` cannot be computed from |g| alone,
    so only a bound is tested.
    """
    texts = encoded(double_model)[:1]
    maps: dict[int, torch.Tensor] = {}
    targets = predictions_of(double_model, texts, Slope(), "k")
    masked = [replace(text, ids=ids) for text, ids in zip(texts, targets.ids, strict=True)]
    double_model.stream(double_model.inputs(masked), lambda index, weights, *_: maps.update({index: weights.clone()}))
    plain = gradients(double_model, texts, Slope(), "k")
    times = gradients(double_model, texts, Slope(form="times_weight"), "k")
    softmax = gradients(double_model, texts, Slope(form="through_softmax"), "k")
    for index, sizes in plain.items():
        torch.testing.assert_close(times[index].double(), (maps[index] * sizes).double(), rtol=1e-4, atol=1e-7)
        # The gradients of a row through the softmax sum to 0, so each size is at most half of the sum of all sizes.
        assert (softmax[index].amax(-1) <= softmax[index].sum(-1) / 2 + 1e-6).all()


def test_integrated_gradients_sum_to_the_change_of_the_loss_without_attention(double_model: Model) -> None:
    """With all attention scaled together, signed products sum to the loss with attention minus the loss without it."""
    texts, signed = encoded(double_model)[:1], []

    def take(index: int, weights: torch.Tensor, gradient: torch.Tensor, seen: Any) -> None:
        signed.append(float((weights.double() * gradient.double()).sum()))

    from headscope.models import gradients as module

    slope, steps = Slope(share=0.4), 80
    targets = predictions_of(double_model, texts, slope, "0/0")
    for step in range(steps):
        module._pass(double_model, targets, texts, slope, (step + 0.5) / steps, take, frozenset(range(len(double_model.sites))))
    with_attention = loss_of(double_model, texts, slope, "0/0")

    def zeroed(eager: Callable[..., Any], module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        return eager(module, *args, **kwargs)[0] * 0, None

    with capture.tapped(double_model.network, zeroed):
        without = loss_of(double_model, texts, slope, "0/0")
    tolerance = 5e-3 if "DistilBert" in type(double_model.whole).__name__ else 2e-3  # the kink in its head makes the mean less exact
    assert sum(signed) / steps == pytest.approx(with_attention - without, abs=tolerance * max(1, abs(with_attention - without)))
    assert abs(with_attention - without) > 1e-3


def test_integrated_gradients_are_full_weights_times_mean_gradients(double_model: Model) -> None:
    from headscope.models import gradients as module

    texts, slope = encoded(double_model), Slope(form="integrated", steps=3, share=0.4)
    targets = predictions_of(double_model, texts, slope, "0/0")
    masked = [replace(text, ids=ids) for text, ids in zip(texts, targets.ids, strict=True)]
    maps: dict[int, torch.Tensor] = {}
    double_model.stream(double_model.inputs(masked), lambda index, weights, *_: maps.update({index: weights.clone()}))
    means = {index: torch.zeros_like(weights, dtype=torch.float64) for index, weights in maps.items()}
    for scale in (1 / 6, 3 / 6, 5 / 6):

        def take(index: int, weights: torch.Tensor, gradient: torch.Tensor, seen: Any) -> None:
            means[index] += gradient.double() / 3

        module._pass(double_model, targets, texts, slope, scale, take, frozenset(maps))
    found = gradients(double_model, texts, slope)
    assert set(found) == set(range(len(double_model.sites)))
    for index, sizes in found.items():
        torch.testing.assert_close(sizes.double(), (maps[index].double() * means[index]).abs(), rtol=1e-4, atol=1e-7)


def test_gradients_do_not_depend_on_the_batch(double_model: Model) -> None:
    texts = encoded(double_model)
    together = gradients(double_model, texts, Slope())
    for number, text in enumerate(texts):
        for index, sizes in gradients(double_model, [text], Slope()).items():
            rows, columns = sizes.shape[2:]
            torch.testing.assert_close(together[index][number, :, :rows, :columns], sizes[0], rtol=1e-5, atol=1e-8)


def test_masks_are_drawn_as_in_berts_training() -> None:
    model = hs.load("mini", device="cpu")
    text = next(iter(encoder_for(make_spec({}).resolved(pairs=False), model.tokenizer, None).texts(hs.read("sampler"), Tally())))
    words = [n for n, role in enumerate(text.roles) if role == WORD]
    mask, vocabulary = model.tokenizer.mask_id, 30522
    assert mask is not None
    fates = {"mask": 0, "same": 0, "other": 0}
    for draw in range(400):
        targets = predictions([text], "masked", mask, vocabulary, 0.15, f"0/{draw}")
        assert len(targets.places) == max(1, round(0.15 * len(words)))
        assert set(targets.places) <= set(words)
        assert_array_equal(targets.labels, text.ids[targets.places])
        changed = np.flatnonzero(targets.ids[0] != text.ids)
        assert set(changed) <= set(targets.places)
        for place in targets.places:
            now = targets.ids[0][place]
            fates["mask" if now == mask else "same" if now == text.ids[place] else "other"] += 1
    total = sum(fates.values())
    assert_allclose([fates[name] / total for name in ("mask", "other", "same")], [0.8, 0.1, 0.1], atol=0.05)
    again = predictions([text], "masked", mask, vocabulary, 0.15, "0/7")
    assert_array_equal(again.ids[0], predictions([text], "masked", mask, vocabulary, 0.15, "0/7").ids[0])


def test_classes_are_found_by_name_and_number_and_others_are_refused() -> None:
    known = {"bad": 0, "good": 1, "LABEL_2": 2}
    assert [class_number(label, known) for label in ("bad", "GOOD", "label_2", "0", "2")] == [0, 1, 2, 0, 2]
    assert class_number("1", {"1": 0, "0": 1}) == 0
    for wrong in ("3", "-1", "", "1.0", "goo"):
        with pytest.raises(ModelError, match=rf"the label '{wrong}' is not one of the model's: bad, good, LABEL_2\. Name labels as"):
            class_number(wrong, known)
    with pytest.raises(ModelError, match="the label 'NO' is not one of the model's: no, No"):
        class_number("NO", {"no": 0, "No": 1})


def test_models_without_a_head_and_maps_without_a_model_are_refused(tmp_path: Path) -> None:
    tokens = FAMILIES["wordpiece"]()
    BertModel(BertConfig(vocab_size=len(tokens), **TINY["bert"][3])).save_pretrained(tmp_path / "bare")
    tokens.save_pretrained(tmp_path / "bare")
    with pytest.raises(ModelError, match=r"saliency needs a loss.* or remove saliency from --measures"):
        hs.run(tmp_path / "bare", CORPUS, ["saliency"], gallery=0)
    with pytest.raises(ModelError, match=r"it has no language-modelling head, and --generate needs one.* or omit --generate") as refused:
        hs.run(tmp_path / "bare", CORPUS, ["entropy"], generate=4, gallery=0)
    assert "saliency" not in str(refused.value)
    with pytest.raises(ModelError, match="head=True"):
        hs.run(hs.load("mini", device="cpu"), CORPUS, ["saliency"], gallery=0)
    with pytest.raises((hs.errors.MeasureError, RunError), match="needs gradients"):
        hs.measure(np.full((1, 1, 2, 2), 0.5), ["a", "b"], ["saliency"])
