"""Fine-tuning with AdamW: the dev part is never trained on, the best state is kept, and the majority class is the
baseline.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.core.document import Document
from headscope.core.tally import Tally
from headscope.corpora.corpus import Corpus
from headscope.encoding.batches import pooled
from headscope.encoding.texts import Encoder
from headscope.errors import HeadscopeError, ModelError
from headscope.models.finetuning.classifier import Classifier, optimiser
from headscope.models.finetuning.examples import LabelledExample, examples, held_out, names_of, some
from headscope.models.finetuning.recipe import Check, TrainedModel, TrainingRecipe
from headscope.models.load import load, load_given, quietly
from headscope.models.loading.in_memory import ModelInMemory
from headscope.models.model import Model
from headscope.models.saving import require_room, written_whole
from headscope.stats.classification import KeyphraseF1
from headscope.stats.scores import make_score

if TYPE_CHECKING:
    from jaxtyping import Int64

RECORD = "training.json"
Progress = Callable[[float | None, int, int], None]


def train(
    corpus: Corpus,
    out: str | Path,
    model: Model | ModelInMemory | str | Path = "mini",
    dev: Corpus | None = None,
    recipe: TrainingRecipe | None = None,
    device: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    on_check: Callable[[Check], None] | None = None,
) -> TrainedModel:
    """Fine-tune a model on a labelled corpus and save the best state in the folder `out`, in the format of
    transformers.

    The same recipe, corpus and machine give the same model. `progress` is called with the share that is done and the
    numbers of texts and tokens, `on_check` with each evaluation on the dev part.
    """
    plan, folder = recipe or TrainingRecipe(), Path(out)
    require_room(folder)
    _check_folder(folder, overwrite)
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(plan.seed)
        base = load(model, device) if isinstance(model, str | Path) else load_given(model, model.name, device)
        base.require_plain_weights("training")
        data = _Data.read(corpus, dev, plan)
        encoder = Encoder(
            base.tokenizer,
            unit="pair" if corpus.pairs else "document" if plan.labels in ("label", "keyphrases") else "sentence",
            max_length=min(plan.max_length, base.max_length or plan.max_length),
            overlong="truncate",
            seed=plan.seed,
        )
        learnt, kept = (examples(part, encoder, plan.labels, data.names, data.tally) for part in (data.train, data.dev))
        if not learnt or not kept:
            raise ModelError(f"there are {len(learnt)} texts to learn from and {len(kept)} to test on", "Give more texts, or a dev corpus")
        classifier = Classifier.of(base, data.names, tags=plan.labels != "label")
        classifier.network.to(base.device)
        require_room(folder, sum(tensor.numel() * tensor.element_size() for tensor in classifier.network.state_dict().values()))
        checks, best = _learn(classifier, learnt, kept, plan, data.names, progress, on_check)
    majority = _majority(learnt, kept, plan, data.names)
    trained = TrainedModel(folder, data.names, plan.scored_by, tuple(checks), best, majority, len(learnt), len(kept), data.tally.lines())
    _save(classifier, trained, plan, base.name, corpus, dev)
    return trained


@dataclass(frozen=True)
class _Data:
    train: list[Document]
    dev: list[Document]
    names: tuple[str, ...]
    tally: Tally

    @classmethod
    def read(cls, corpus: Corpus, dev: Corpus | None, plan: TrainingRecipe) -> _Data:
        """The documents of both parts, and all labels of the first corpus."""
        documents = list(corpus)
        names = names_of(documents, plan.labels)
        parts = (documents, list(dev)) if dev is not None else held_out(documents, plan.held_out, plan.seed)
        return cls(some(parts[0], plan.limit, plan.seed), parts[1], names, Tally())


def _learn(
    classifier: Classifier,
    learnt: Sequence[LabelledExample],
    kept: Sequence[LabelledExample],
    plan: TrainingRecipe,
    names: Sequence[str],
    progress: Progress | None,
    on_check: Callable[[Check], None] | None,
) -> tuple[list[Check], Check]:
    """Train, and leave the network in the state that had the best score on the dev part."""
    network, an_epoch = classifier.network, math.ceil(len(learnt) / plan.batch)
    steps = an_epoch * plan.epochs
    looks = {round(an_epoch * look / plan.checks) for look in range(1, plan.epochs * plan.checks + 1)} | {steps}
    adamw, schedule = optimiser(network, plan.rate, plan.weight_decay, steps, plan.warmup)
    checks: list[Check] = []
    best: Check | None = None
    state: dict[str, torch.Tensor] = {}
    losses: list[float] = []
    texts = tokens = since = 0
    for step, batch in enumerate(_batches(learnt, plan), 1):
        network.train()
        losses.append(classifier.step(batch))
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        adamw.step()
        schedule.step()
        adamw.zero_grad()
        texts, tokens = texts + len(batch), tokens + sum(len(example.text) for example in batch)
        if progress is not None:
            progress(step / steps, texts, tokens)
        if step not in looks:
            continue
        dev_loss, found, true = classifier.evaluate(kept)
        checks.append(Check(step, step / an_epoch, float(np.mean(losses)), dev_loss, _score(found, true, plan.scored_by, names)))
        losses.clear()
        if on_check is not None:
            on_check(checks[-1])
        if not math.isfinite(checks[-1].loss):
            raise ModelError(f"the loss is not a number after {step} steps at a rate of {plan.rate}", "Use a smaller --rate")
        since += 1
        if best is None or checks[-1].beats(best):
            best, since = checks[-1], 0
            state = {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}
        if since >= plan.patience:
            break
    assert best is not None  # the last step is always evaluated
    network.load_state_dict(state)
    network.eval()
    return checks, best


def _batches(learnt: Sequence[LabelledExample], plan: TrainingRecipe) -> Iterator[list[LabelledExample]]:
    """Batches of texts of similar length, in a new order each epoch: the texts of 50 batches are drawn, sorted and
    split.
    """
    rng = np.random.default_rng(plan.seed)
    for _ in range(plan.epochs):
        order = rng.permutation(len(learnt))
        parts = list(chain.from_iterable(pooled(order, plan.batch, 50, lambda place: len(learnt[place].text))))
        for number in rng.permutation(len(parts)):
            yield [learnt[place] for place in parts[number]]


def _score(found: Sequence[Int64[np.ndarray, "n"]], true: Sequence[Int64[np.ndarray, "n"]], metric: str, names: Sequence[str]) -> float:
    score = make_score(metric, len(names))
    if isinstance(score, KeyphraseF1):
        tags = [[[names[number] for number in text] for text in side] for side in (found, true)]
        return float(score.of(score.statistics(*tags)))
    flat: Any = score
    return float(score.of(flat.statistics(np.concatenate(found), np.concatenate(true))))


def _majority(learnt: Sequence[LabelledExample], kept: Sequence[LabelledExample], plan: TrainingRecipe, names: Sequence[str]) -> float:
    counts = Counter(number for example in learnt for number in example.labels[example.labels >= 0].tolist())
    true = [example.labels[example.labels >= 0] for example in kept]
    return _score([np.full_like(labels, counts.most_common(1)[0][0]) for labels in true], true, plan.scored_by, names)


def _check_folder(folder: Path, overwrite: bool) -> None:
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / RECORD).is_file():
            raise HeadscopeError(f"{folder} contains something other than a trained model", "Name a new folder")
        if not overwrite:
            raise HeadscopeError(f"{folder} contains a trained model", "Name another folder, or add --overwrite")


def _save(classifier: Classifier, trained: TrainedModel, plan: TrainingRecipe, model: str, corpus: Corpus, dev: Corpus | None) -> None:
    about = {
        "model": model,
        "corpus": [Path(name).name for name in corpus.names],
        "corpus_sha256": corpus.hash(),
        "dev": [Path(name).name for name in dev.names] if dev is not None else None,
        "dev_sha256": dev.hash() if dev is not None else None,
        "recipe": asdict(plan),
        **{name: value for name, value in asdict(trained).items() if name != "folder"},
    }
    with quietly(), written_whole(trained.folder) as place:
        classifier.network.cpu().save_pretrained(place)
        classifier.model.tokenizer.hf.save_pretrained(place)
        (place / RECORD).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
