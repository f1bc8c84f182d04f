"""One step of a recipe: a run, a study, or the training of a model, done by the usual command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.suggest import choose_from
from headscope.corpora import Corpus, read
from headscope.errors import HeadscopeError, RunError
from headscope.replication.recipe import NONE, Recipe, Step
from headscope.studies.registry import study_of_verb

if TYPE_CHECKING:
    from headscope.engine.shards import Progress
    from headscope.models.loading.in_memory import ModelInMemory
    from headscope.models.model import Model
    from headscope.results.results import Results


@dataclass
class StepContext:
    """The inputs of all steps: the model, the corpora by role, the folder of results. Models are loaded once."""

    name: str
    recipe: Recipe
    model: Model | ModelInMemory | str
    corpora: Mapping[str, tuple[str, ...]]
    folder: Path
    device: str | None = None
    full: bool = False
    _models: dict[tuple[str, bool], Model] = field(default_factory=dict)

    def settings(self, step: Step) -> dict[str, Any]:
        """The settings of the step, without its model and its corpora."""
        settings = {**step.settings, **({} if self.full else step.brief)}
        return {name: None if value == 0 and "limit" in name else value for name, value in settings.items()}  # 0: all of them

    def corpus(self, step: Step) -> tuple[str, ...] | None:
        """The files for the step's role; None if none are given and there is no default."""
        return self.corpora.get(step.corpus) or ((step.default,) if step.default != NONE else None)

    def dev(self, step: Step) -> tuple[str, ...] | None:
        """The files that the step is tested on, if any are given."""
        return self.corpora.get(step.dev) if step.dev is not None else None

    def used(self) -> dict[str, tuple[str, ...]]:
        """The files that are read, by role: the given ones, and defaults for other roles."""
        files = {
            role: paths for step in self.recipe.steps for role, paths in ((step.corpus, self.corpus(step)), (step.dev, self.dev(step)))
        }
        return {role: paths for role, paths in files.items() if role is not None and paths is not None}

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self.model if isinstance(self.model, str) else self.model.name

    def model_of(self, step: Step) -> str:
        """The name of a step's model, or the folder of the step that trains it."""
        return self.model_name if step.model is None else str(self.folder / step.model)

    def given(self, step: Step) -> Model | ModelInMemory | None:
        """A step's model, if it was given as an object and not by name."""
        return None if step.model is not None or isinstance(self.model, str) else self.model

    def loaded(self, step: Step, head: bool) -> Model:
        """A step's model, loaded."""
        from headscope.models.load import load_given

        name = self.model_of(step)
        if (name, head) not in self._models:
            self._models[name, head] = load_given(self.given(step), name, self.device, head=head)
        return self._models[name, head]


def check_settings(context: StepContext, step: Step) -> None:
    """Raise an error for a setting that the step's verb lacks, or an unknown figure, before anything is computed."""
    from headscope.figures import known_figures

    where = f"step {step.name} of {context.recipe.name}"
    if unknown := [figure.name for figure in step.figures if figure.name not in known_figures()]:
        raise RunError(f"{where}: figure {unknown[0]!r} is unknown", choose_from(unknown[0], known_figures()))
    try:
        _spec(context, step, ("sampler",), None)
    except HeadscopeError as error:
        raise RunError(f"{where}: {error.problem}", error.remedy) from None
    except TypeError as error:
        raise RunError(f"{where}: {error}", "See docs/training.md for the settings of training") from None


def clear(context: StepContext) -> None:
    """Mark earlier results of steps as deleted, so that they are not mistaken for results of this replication."""
    from headscope.models.finetuning.training import RECORD
    from headscope.models.saving import invalidate
    from headscope.results.folder import Folder

    for step in context.recipe.steps:
        folder = Folder(context.folder / step.name)
        folder.mark_cleared()
        if (folder.path / RECORD).is_file():
            invalidate(folder.path)


def do(context: StepContext, step: Step, resume: bool, overwrite: bool, progress: Progress | None) -> Results | None:
    """The step's results, computed now or before; None if it trains a model. A RunError says why it cannot run."""
    corpus = context.corpus(step)
    if corpus is None:
        raise RunError(f"it needs a corpus that headscope does not include: give --corpus {step.corpus}=FILE")
    out = context.folder / step.name
    if step.verb == "train":
        _train(context, step, corpus, out, overwrite, progress)
        return None
    if step.model is not None:
        return _with_trained(context, step, corpus, out, resume, overwrite, progress)
    dev = context.dev(step)
    spec = _spec(context, step, corpus, dev)
    how: dict[str, Any] = {"device": context.device, "resume": resume, "overwrite": overwrite, "progress": progress}
    if getattr(spec, "weights", "trained") == "trained" and getattr(spec, "dtype", "float32") == "float32":
        how["model"] = context.loaded(step, _predicts(step) or getattr(spec, "predicts", False))
    elif (given := context.given(step)) is not None:
        how["model"] = given
    return _execute(step, spec, out, **how)


def _with_trained(
    context: StepContext, step: Step, corpus: tuple[str, ...], out: Path, resume: bool, overwrite: bool, progress: Progress | None
) -> Results:
    """A study of a model that a step trained, on its dev corpus or on the documents that it held out."""
    from headscope.models.finetuning.examples import held_out

    assert step.model is not None
    trained = context.recipe.step(step.model)
    recipe = _training(context, trained)
    dev = context.dev(trained)
    texts = read(*dev) if dev is not None else Corpus.of(held_out(list(read(*corpus)), recipe.held_out, recipe.seed)[1])
    how: dict[str, Any] = {"device": context.device, "resume": resume, "overwrite": overwrite, "progress": progress}
    model = context.loaded(step, _predicts(step))
    return _execute(step, _spec(context, step, dev or corpus, None), out, model=model, corpus=texts, **how)


def _predicts(step: Step) -> bool:
    """Whether a step's model must be able to predict."""
    return step.verb != "run" and study_of_verb(step.verb).predicts


def _execute(step: Step, spec: Any, out: Path, **how: Any) -> Results:
    """The results of a run or a study."""
    if step.verb == "run":
        from headscope.runs.execute import execute

        return execute(spec, out, **how)
    from headscope.studies.execute import execute as execute_study

    return execute_study(study_of_verb(step.verb), spec, out, **how)


def _spec(context: StepContext, step: Step, corpus: tuple[str, ...], dev: tuple[str, ...] | None) -> Any:
    settings = {"model": context.model_of(step), "corpus": corpus, **({"dev": dev} if dev is not None else {}), **context.settings(step)}
    if step.verb == "train":
        return _training(context, step)
    if step.verb == "run":
        from headscope.engine.spec import make_spec

        return make_spec(settings, "its settings")
    return study_of_verb(step.verb).make(settings, "its settings")


def _training(context: StepContext, step: Step) -> Any:
    from headscope.models.finetuning.recipe import TrainingRecipe as Training

    return Training(**context.settings(step))


def _train(context: StepContext, step: Step, corpus: tuple[str, ...], out: Path, overwrite: bool, progress: Progress | None) -> None:
    """Train the step's model, unless it is already trained."""
    from dataclasses import asdict

    from headscope.models.finetuning.training import RECORD, train
    from headscope.models.saving import is_whole

    recipe, texts, dev = _training(context, step), read(*corpus), context.dev(step)
    tried = read(*dev) if dev is not None else None
    wanted = {"corpus_sha256": texts.hash(), "dev_sha256": tried.hash() if tried is not None else None, "recipe": asdict(recipe)}
    record = out / RECORD
    if not overwrite and record.is_file() and is_whole(out):
        known = json.loads(record.read_text(encoding="utf-8"))
        if {name: known.get(name) for name in wanted} == wanted:
            return
    train(texts, out, context.given(step) or context.model_of(step), tried, recipe, context.device, overwrite=True, progress=progress)
