"""Fine-tuning of small random models on tasks that a majority baseline cannot solve: learning, scores, saving and
loading.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BartConfig, BartModel, BertConfig, BertModel, GPT2Config, GPT2Model

import headscope as hs
from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoder
from headscope.errors import HeadscopeError, ModelError
from headscope.models.finetuning.classifier import Classifier, share_of_rate
from headscope.models.finetuning.examples import UNLABELLED, examples
from headscope.models.finetuning.recipe import Check, TrainingRecipe
from headscope.models.finetuning.training import train
from helpers.families import FAMILIES

SIZES: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
RECIPE = TrainingRecipe(epochs=4, batch=8, rate=5e-3, checks=1, held_out=0.3)
FILL = ("the", "mat", "sat", "on", "a", "garden", "and", "in")


def saved(folder: Path, kind: Any = BertModel, config: Any = BertConfig, tokenizer: str = "wordpiece", **sizes: Any) -> Path:
    tokens = FAMILIES[tokenizer]()
    torch.manual_seed(0)
    kind(config(vocab_size=len(tokens), **(sizes or SIZES))).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


def animals(n: int = 120, seed: int = 0, pairs: bool = False) -> Corpus:
    """Texts that contain a cat (`yes`) or a dog (`no`) among other words. In a pair, the second text contains it."""
    rng = np.random.default_rng(seed)
    documents = []
    for number in range(n):
        cat = bool(rng.integers(2))
        words = [str(word) for word in rng.choice(FILL, 5)]
        words[rng.integers(5)] = "cat" if cat else "dog"
        parts = [(f"{word}" for word in rng.choice(FILL, 3)), words] if pairs else [words]
        sentences = tuple(Sentence(tuple(map(Word, map(str, part))), paragraph=place) for place, part in enumerate(parts))
        documents.append(Document(f"d{number}", sentences, label="yes" if cat else "no"))
    return Corpus.of(documents)


def accuracy(folder: Path, corpus: Corpus) -> float:
    """The accuracy of the saved model, computed text by text. A plain second implementation."""
    model = hs.load(folder, device="cpu", head=True)
    right = []
    for text in Encoder(model.tokenizer, "document").texts(corpus, Tally()):
        assert model.whole is not None
        answer = int(model.whole(input_ids=torch.tensor(text.ids)[None]).logits[0].argmax())
        right.append(answer == model.classes[str(text.label)])
    return float(np.mean(right))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("tiny"))


def test_classes_are_learnt_and_the_saved_model_has_the_reported_score(tiny: Path, tmp_path: Path) -> None:
    reported: list[Check] = []
    shares: list[float | None] = []
    dev = animals(60, seed=9)
    trained = train(
        animals(), tmp_path / "m", tiny, dev, RECIPE, "cpu", progress=lambda share, *_: shares.append(share), on_check=reported.append
    )
    assert (trained.names, trained.n_train, trained.n_dev, trained.metric) == (("no", "yes"), 120, 60, "accuracy")
    assert trained.best.score > 0.95
    labels = [document.label for document in dev]
    most = max(("no", "yes"), key=[document.label for document in animals()].count)
    assert trained.majority == pytest.approx(labels.count(most) / 60)
    assert trained.majority < 0.7
    assert accuracy(tmp_path / "m", dev) == pytest.approx(trained.best.score)
    assert reported == list(trained.checks)
    assert shares[-1] == 1
    assert len(shares) == 4 * 15
    model = hs.load(tmp_path / "m", device="cpu", head=True)
    assert (model.objective, model.classes) == ("classes", {"no": 0, "yes": 1})
    about = json.loads((tmp_path / "m" / "training.json").read_text(encoding="utf-8"))
    assert about["best"]["score"] == trained.best.score
    assert about["recipe"]["rate"] == 5e-3
    assert not list((tmp_path / "m").glob("*.bin"))


def test_the_second_text_of_a_pair_is_read(tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    lines = []
    for document in animals(300, pairs=True):
        first, second = (sentence.text for sentence in document.sentences)
        lines.append(json.dumps({"premise": first, "hypothesis": second, "label": document.label}))
    path.write_text("\n".join(lines), encoding="utf-8")
    trained = hs.train(path, tmp_path / "m", tiny, device="cpu", epochs=6, batch=8, rate=5e-3, checks=1, held_out=0.3)
    assert trained.n_train + trained.n_dev == 300
    assert trained.best.score > 0.9 > trained.majority + 0.2


def test_a_decoder_without_a_padding_token_is_trained(tmp_path: Path) -> None:
    folder = saved(tmp_path / "g", GPT2Model, GPT2Config, "gpt2", n_embd=24, n_layer=1, n_head=2)
    dev = animals(40, seed=3)
    trained = train(animals(), tmp_path / "m", folder, dev, replace(RECIPE, epochs=6), "cpu")
    assert trained.best.score > 0.9
    assert accuracy(tmp_path / "m", dev) == pytest.approx(trained.best.score)


def test_tags_of_words_and_keyphrases_are_learnt(tiny: Path, tmp_path: Path) -> None:
    tags = {"cat": "NOUN", "dog": "NOUN", "mat": "NOUN", "garden": "NOUN", "sat": "VERB"}
    documents = [
        replace(
            document, sentences=tuple(Sentence(tuple(replace(word, upos=tags.get(word.form, "X")) for word in document.words)) for _ in "1")
        )
        for document in animals()
    ]
    trained = train(Corpus.of(documents), tmp_path / "m", tiny, None, replace(RECIPE, labels="upos", metric="f1_macro"), "cpu")
    assert trained.names == ("NOUN", "VERB", "X")
    assert trained.best.score > 0.95
    model = hs.load(tmp_path / "m", device="cpu", head=True)
    assert (model.objective, model.classes) == ("tags", {"NOUN": 0, "VERB": 1, "X": 2})
    phrased = [replace(document, keyphrases=("CAT", "a dog", "dog")) for document in documents]
    trained = train(Corpus.of(phrased), tmp_path / "k", tiny, None, replace(RECIPE, labels="keyphrases", epochs=6), "cpu")
    assert (trained.names, trained.metric) == (("O", "B", "I"), "keyphrase_tokens")
    assert trained.best.score > 0.9
    assert trained.majority == 0


def weights(folder: Path) -> dict[str, torch.Tensor]:
    whole = hs.load(folder, device="cpu", head=True).whole
    assert whole is not None
    found: dict[str, torch.Tensor] = whole.state_dict()
    return found


def test_the_trained_weights_depend_only_on_the_seed(tiny: Path, tmp_path: Path) -> None:
    short = replace(RECIPE, epochs=1, limit=40)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        torch.rand(3)  # earlier random draws do not matter
        train(animals(), tmp_path / name, tiny, None, replace(short, seed=seed), "cpu")
    a, b, c = (weights(tmp_path / name) for name in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["classifier.weight"], c["classifier.weight"])


def test_training_stops_after_checks_without_improvement(tiny: Path, tmp_path: Path) -> None:
    trained = train(animals(), tmp_path / "m", tiny, None, replace(RECIPE, rate=1e-15, epochs=9, patience=2), "cpu")
    assert [check.epoch for check in trained.checks] == [1, 2, 3]
    assert trained.best == trained.checks[0]


def test_the_state_with_the_best_score_is_saved(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[dict[str, torch.Tensor]] = []
    right = [0.5, 1.0, 0.25, 0.75]

    def evaluate(self: Classifier, given: Any, size: int = 64) -> Any:
        states.append({name: tensor.clone() for name, tensor in self.network.state_dict().items()})
        true = np.zeros(4, dtype=np.int64)
        return 1.0, [(np.arange(4) >= 4 * right[len(states) - 1]).astype(np.int64)], [true]

    monkeypatch.setattr(Classifier, "evaluate", evaluate)
    trained = train(animals(40), tmp_path / "m", tiny, None, RECIPE, "cpu")
    assert [check.score for check in trained.checks] == right
    assert trained.best.epoch == 2
    found = weights(tmp_path / "m")
    assert all(torch.equal(found[name], states[1][name]) for name in found)
    assert not torch.equal(states[1]["classifier.weight"], states[3]["classifier.weight"])


def test_the_learning_rate_rises_and_falls_linearly() -> None:
    """10 steps, 2 of them to warm up: a third, two thirds and all of the rate, then an eighth less in each step."""
    found = [share_of_rate(step, 10, 2) for step in range(10)]
    assert found == pytest.approx([1 / 3, 2 / 3, *(eighth / 8 for eighth in range(8, 0, -1))])
    assert share_of_rate(0, 4, 0) == 1


def test_losses_and_predictions_do_not_depend_on_padding(tiny: Path) -> None:
    """The loss and the predictions of a batch equal those of its texts one by one."""
    model = hs.load(tiny, device="cpu")
    documents = [Document(str(size), (Sentence(tuple(Word(word, upos="X") for word in FILL[:size])),), label="no") for size in (2, 8, 5)]
    for labels, names in (("label", ("no", "yes")), ("upos", ("A", "X"))):
        encoder = Encoder(model.tokenizer, "document")
        given = examples(documents, encoder, labels, names, Tally())  # type: ignore[arg-type]
        torch.manual_seed(3)
        classifier = Classifier.of(model, names, tags=labels == "upos")
        loss, found, true = classifier.evaluate(given)
        alone = [classifier.evaluate([example]) for example in given]
        counts = [(example.labels != UNLABELLED).sum() for example in given]
        assert loss == pytest.approx(np.average([one[0] for one in alone], weights=counts))
        assert [text.tolist() for text in found] == [one[1][0].tolist() for one in alone]
        assert [text.tolist() for text in true] == [one[2][0].tolist() for one in alone]
        assert counts == ([1, 1, 1] if labels == "label" else [2, 8, 5])


def test_corpora_folders_and_models_that_cannot_be_used_are_refused(tiny: Path, tmp_path: Path) -> None:
    one = Corpus.of(replace(document, label="yes") for document in animals(8))
    with pytest.raises(ModelError, match="nothing to learn: all texts are labelled 'yes'"):
        train(one, tmp_path / "m", tiny)
    with pytest.raises(ModelError, match=r"no text has a label \(xpos\)"):
        train(animals(8), tmp_path / "m", tiny, recipe=TrainingRecipe(labels="xpos"))
    with pytest.raises(ModelError, match="8 labels on 8 texts"):
        train(Corpus.of(replace(document, label=f"{document.id}.5") for document in animals(8)), tmp_path / "m", tiny)
    other = Corpus.of(replace(document, label="maybe") for document in animals(8))
    with pytest.raises(ModelError, match="d0 is labelled 'maybe', which is not in the training corpus: no, yes"):
        train(animals(8), tmp_path / "m", tiny, other)
    with pytest.raises(ModelError, match="8 texts to learn from and 0 to test on"):
        train(animals(8), tmp_path / "m", tiny, recipe=TrainingRecipe(held_out=0))
    with pytest.raises(ModelError, match=r"the loss is not a number|Use a smaller --rate"):
        train(animals(40), tmp_path / "m", tiny, recipe=TrainingRecipe(rate=1e30, checks=1), device="cpu")
    assert not (tmp_path / "m").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(HeadscopeError, match="contains something other"):
        train(animals(8), tmp_path / "full", tiny, overwrite=True)
    (tmp_path / "full" / "training.json").touch()
    with pytest.raises(HeadscopeError, match="--overwrite"):
        train(animals(8), tmp_path / "full", tiny)
    with pytest.raises(HeadscopeError, match="is a file"):
        train(animals(8), tmp_path / "full" / "thesis.tex", tiny)
    sizes = {"d_model": 12, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    bart = saved(tmp_path / "bart", BartModel, BartConfig, "roberta", **sizes)
    with pytest.raises(ModelError, match="has a decoder beside its encoder"):
        train(animals(), tmp_path / "m", bart)


@pytest.mark.parametrize("wrong", [{"labels": "mood"}, {"metric": "bleu"}, {"epochs": 0}, {"rate": float("nan")}, {"warmup": 1.0}])
def test_invalid_training_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="Use"):
        TrainingRecipe(**wrong)
    with pytest.raises(ModelError, match="there is no setting 'lr'"):
        hs.train(animals(8), "m", lr=1)
