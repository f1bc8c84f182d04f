"""Reruns: a run or a study is made again with its settings, and compared with the earlier results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.comparison.identical import Sameness, compare
from headscope.core.paths import kind_of
from headscope.corpora import Corpus, read
from headscope.corpora.inputs import is_generated, split_columns
from headscope.corpora.spool import INPUT, MEMORY
from headscope.errors import ModelError, RunError
from headscope.models import EMBEDDED
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import differences, versions
from headscope.studies.registry import REGISTRY

if TYPE_CHECKING:
    from headscope.engine.shards import Progress
    from headscope.models.loading.in_memory import ModelInMemory
    from headscope.models.model import Model

_EMBEDDED = ("sampler", *EMBEDDED)
UNNAMED = {MEMORY: "texts in memory", INPUT: "standard input"}  # corpora by their names in specifications
Texts = Any  # what `headscope.read` takes


def refuse(results: Results) -> None:
    """Raise an error for results that cannot be made again, which says what is missing."""
    identity, where = results.manifest.get("identity", {}), results.path
    if "maps" in identity:
        remedy = "Measure the saved maps again with headscope run --maps, and compare both with headscope compare"
        raise RunError(f"{where} was made from maps, and does not record their files", remedy)
    if results.study == "replication":
        raise RunError(
            f"{where} is a replication of several steps", "Rerun the steps, each in its own folder, or replicate the paper again"
        )
    if results.study is not None:
        REGISTRY[results.study].refuse_rerun(results)
    if not {"model", "corpus", "settings"} <= identity.keys():
        raise RunError(f"{where} does not record what it was made from", "It was written by an older version of headscope; run it again")


class Places:
    """The places of the files that a run names: relative to where it was started, if that is known, or to here."""

    def __init__(self, results: Results) -> None:
        assert results.path is not None
        self._run = results.path
        started = results.manifest.get("made", {}).get("from")
        self._base = None if started is None else (results.path / started).resolve()

    def find(self, name: str) -> str | None:
        """The path of a file that a run names, or the name of an embedded model or corpus; None if the file is gone."""
        if name in _EMBEDDED or is_generated(name):
            return name
        path = Path(name).expanduser()
        places = [path] if path.is_absolute() or self._base is None else [self._base / path, path]
        bare = ((str(place), split_columns(str(place))[0]) for place in places)
        return next((place for place, file in bare if kind_of(file) in ("file", "folder")), None)

    def corpus(self, names: Sequence[str], option: str, settings: Mapping[str, Any]) -> Corpus:
        """The corpus of these names; an error says what was not found."""
        places = []
        for name in names:
            if name in UNNAMED:
                problem = f"{self._run} was made from {UNNAMED[name]}, not from a file"
                raise RunError(problem, f"Give the texts again: headscope.rerun({str(self._run)!r}, {option}=...)")
            place = self.find(name)
            if place is None:
                where = f" in {self._base}" if self._base is not None and not Path(name).is_absolute() else ""
                raise RunError(f"{self._run} was made from {name!r}, which does not exist any more{where}", f"Name it with --{option}")
            places.append(place)
        return read(*places, format=settings["format"], on_error=settings["on_error"])


def require_same(results: Results, what: str, then: str | None, now: str, name: str) -> None:
    """Raise an error for a model or a corpus that has changed."""
    if then != now:
        problem = f"{name} has changed since {results.path} was made: its {what} was {str(then)[:16]} and is {now[:16]}"
        remedy = "Name the original, or make a new run and use headscope compare"
        raise RunError(problem, remedy)


def require_corpus(results: Results, corpus: Corpus, option: str) -> None:
    """Raise an error for a corpus other than the one that was read; `option` is `corpus`, `dev` or `look`."""
    identity = results.manifest["identity"]
    then = identity.get(option) or identity["settings"].get(option)
    name = f"the {option} given" if corpus.names[0] in UNNAMED else ", ".join(corpus.names)
    require_same(results, "sha256", then, corpus.hash(), name)


@dataclass(frozen=True)
class Rerun:
    """The result of a rerun: the comparison `same`, changed `circumstances`, and the new folder if it is `kept`."""

    then: Results
    now: Results
    same: Sameness
    circumstances: tuple[str, ...]
    kept: Path | None

    @property
    def identical(self) -> bool:
        """Whether all tables, states and the gallery are the same to the last bit."""
        return self.same.identical

    def lines(self) -> list[str]:
        """The result in words, line by line."""
        same = self.same
        counted = f"{same.tables} tables with {same.numbers:,} numbers, and the states behind them with {same.states:,}"
        if same.identical:
            return [f"identical to the last bit: {counted}{'' if same.gallery is None else ', and the gallery'}"]
        lines = [f"not identical, among {counted}:", *(f"only one has {name}" for name in same.only)]
        cells = sum(difference.differing for difference in same.differences)
        if cells:
            lines.append(f"{cells:,} numbers or words differ in {len(same.differences)} columns and arrays")
            judged = "within floating-point noise" if same.noise else "more than floating-point noise"
            lines.append(f"the differences are {judged}")
        if same.gallery is False:
            lines.append("the galleries differ")
        lines += (
            [f"what was different: {'; '.join(self.circumstances)}"]
            if self.circumstances
            else ["no difference in versions or settings is known"]
        )
        return lines

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), *([repr(self.same.table())] if self.same.differences else [])])


def rerun(
    then: Results,
    out: Path | None = None,
    *,
    model: Model | ModelInMemory | str | Path | None = None,
    other: Model | ModelInMemory | str | Path | None = None,
    corpora: Mapping[str, Texts] | None = None,
    device: str | None = None,
    engine: str = "local",
    workers: int = 2,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
) -> Rerun:
    """Make the results in a folder again, with their settings, and compare every table and state.

    The new results go into `out`, or into a folder beside the old one that is removed if all is identical. `model`, the
    `other` model of twins and `corpora`, by the names of their settings, are given only if they have moved. `notify`
    receives changed versions before anything is computed.
    """
    if then.path is None:
        raise RunError("these results have no folder", "Only results in a folder can be made again")
    if then.study is not None and engine != "local":
        raise RunError(f"{then.path} is a study, and studies run in one process", "Omit --engine")
    refuse(then)
    places = Places(then)
    texts = _corpora(then, places, corpora or {})
    spec = _spec(then, places, {"model": model, "other": other})
    device = device or _device(then)
    loaded = _load(then, spec, device, None if isinstance(model, str | Path) else model)
    require_same(then, "fingerprint", then.manifest["identity"]["model"], loaded.fingerprint, f"the model {loaded.name}")
    further = {"other_model": _other(then, spec, other, loaded, device)} if hasattr(spec, "other") else {}
    for line in _other_versions(then) if notify is not None else ():
        assert notify is not None
        notify(line)
    target = out or _beside(then.path)
    how: dict[str, Any] = {**texts, **further, "device": device, "progress": progress}
    if engine == "local" and getattr(spec, "weights", "trained") == "trained":
        how["model"] = loaded
    try:
        with _threads_of(then):
            now = _execute(then, spec, target, how, engine, workers)
        same = compare(then, now)
    except BaseException:
        if out is None:
            with suppress(RunError, OSError):
                Folder(target).remove()
        raise
    if same.identical and out is None:
        Folder(target).remove()
    kept = target if out is not None or not same.identical else None
    return Rerun(then, now, same, circumstances(then, now), kept)


def circumstances(then: Results, now: Results) -> tuple[str, ...]:
    """What differed between the two runs: settings, versions, kind of device, threads."""
    lines = differences(then.manifest["identity"], now.manifest["identity"])
    a, b = (results.manifest.get("made", {}) for results in (then, now))
    for name in ("threads", "machine"):
        if a.get(name) != b.get(name):
            lines.append(f"{name}: {_as_text(a.get(name))} then, {_as_text(b.get(name))} now")
    return tuple(lines)


def _as_text(value: Any) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value or "not known")


def _corpora(then: Results, places: Places, replaced: Mapping[str, Texts]) -> dict[str, Corpus]:
    """The corpora by the names of their settings: as given, or from where they were; an error for a changed one."""
    settings = then.manifest["settings"]
    names = ("corpus",) if then.study is None else REGISTRY[then.study].corpora
    if unknown := [name for name in replaced if name not in names]:
        raise RunError(f"{then.path} was made without --{unknown[0]}", "Omit it")
    corpora = {}
    for name in names:
        if name in replaced:
            corpora[name] = read(replaced[name], format=settings["format"], on_error=settings["on_error"])
        elif settings.get(name):
            corpora[name] = places.corpus(settings[name], name, settings)
        if name in corpora:
            require_corpus(then, corpora[name], name)
    return corpora


def _spec(then: Results, places: Places, models: Mapping[str, Model | ModelInMemory | str | Path | None]) -> Any:
    settings = dict(then.manifest["settings"])
    for name, model in models.items():
        if isinstance(model, str | Path):
            settings[name] = str(model)
        elif model is None and name in settings:
            settings[name] = places.find(settings[name]) or settings[name]
    if then.study is None:
        from headscope.engine.spec import make_spec

        measures = [_own_measure(name, places) for name in settings.pop("own", ())]
        settings["allow_unknown"] = True  # the run was finished, so its texts are accepted
        return make_spec(settings | ({"own": measures} if measures else {}))
    for name in REGISTRY[then.study].files:
        if settings.get(name) is not None:
            settings[name] = places.find(settings[name]) or settings[name]
    settings.pop("cache", None)
    return REGISTRY[then.study].make(settings)


def _own_measure(name: str, places: Places) -> str:
    """The place of a user's measure: FILE.py:CLASS, with the current path of the file."""
    file, _, cls = name.rpartition(":")
    return f"{places.find(file) or file}:{cls}" if file.endswith(".py") else name


def _load(then: Results, spec: Any, device: str | None, model: Model | ModelInMemory | None) -> Model:
    """The given model, or the one that the settings name."""
    from headscope.models.load import load_given

    head = spec.predicts if then.study is None else REGISTRY[then.study].predicts
    random = None if model is not None and not hasattr(model, "load") else spec.random
    try:
        return load_given(model, spec.model, device, spec.dtype, random, head=head)
    except ModelError as error:
        if model is None and "object" in then.manifest["identity"].get("origin", {}):
            remedy = f"Give the model itself: headscope.rerun({str(then.path)!r}, model=(model, tokenizer))"
            raise RunError(f"{then.path} was made with a model in memory, and {error.problem}", remedy) from error
        raise


def _other(then: Results, spec: Any, other: Model | ModelInMemory | str | Path | None, model: Model, device: str | None) -> Model:
    """The second model of a study of two models, which must be unchanged; it may be the first model."""
    from headscope.models.load import load, load_given

    expected = then.manifest["identity"]["settings"]["other"]
    if other is not None and not isinstance(other, str | Path):
        loaded = load_given(other, spec.other, device)
    else:
        loaded = model if model.fingerprint == expected else load(spec.other, device, spec.dtype)
    require_same(then, "fingerprint", expected, loaded.fingerprint, f"the other model {loaded.name}")
    return loaded


def _execute(then: Results, spec: Any, out: Path, how: Mapping[str, Any], engine: str, workers: int) -> Results:
    if then.study is not None:
        from headscope.studies.execute import execute as execute_study

        return execute_study(then.study, spec, out, **how)
    from headscope.engine.sample import SIZE
    from headscope.runs.execute import execute

    size = then.manifest.get("made", {}).get("gallery", SIZE)
    gallery = (size or SIZE) if then.manifest.get("gallery") is not None else size
    return execute(spec, out, **how, engine=engine, workers=workers, gallery=gallery)  # type: ignore[arg-type]


def _device(results: Results) -> str | None:
    """The kind of device on which the results were made, if it is available."""
    import torch

    kind = results.manifest["identity"]["settings"].get("device")
    return str(kind) if kind == "cpu" or (kind == "cuda" and torch.cuda.is_available()) else None


def _beside(path: Path) -> Path:
    """A new folder beside a run."""
    place = path.resolve()
    names = (f"{place.name}.rerun{f'-{number}' if number > 1 else ''}" for number in range(1, 10_000))
    return next(place.with_name(name) for name in names if not place.with_name(name).exists())


def _other_versions(results: Results) -> list[str]:
    then, now = results.manifest["identity"].get("versions", {}), versions()
    return [f"{name} was {then[name]} and is {now[name]}" for name in now if name in then and then[name] != now[name]]


@contextmanager
def _threads_of(results: Results) -> Iterator[None]:
    """Compute with as many threads as the run did, if it says so."""
    import torch

    recorded = results.manifest.get("made", {}).get("threads") or [torch.get_num_threads()]
    before = torch.get_num_threads()
    torch.set_num_threads(recorded[0])
    try:
        yield
    finally:
        torch.set_num_threads(before)
