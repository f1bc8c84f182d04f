"""Making a run or a study again, and comparing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.api.results import Run, Study, TwinHeads, results_of
from headscope.corpora import Corpus, read
from headscope.errors import RunError
from headscope.replication.kinds import kind_of
from headscope.results.folder import Folder
from headscope.results.results import Results

if TYPE_CHECKING:
    from headscope.comparison.rerun import Rerun
    from headscope.engine.shards import Progress
    from headscope.models.model import Model

Texts = Corpus | str | Path | Sequence[str | Path]
_CORPORA = ("corpus", "dev", "look")


def rerun(
    run: str | Path | Run | Study | TwinHeads,
    out: str | Path | None = None,
    *,
    model: Model | str | Path | None = None,
    other: Model | str | Path | None = None,
    corpus: Texts | None = None,
    dev: Texts | None = None,
    look: Texts | None = None,
    device: str | None = None,
    engine: str = "local",
    workers: int = 2,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Rerun:
    """Make a run or a study in a folder again, with its settings, and compare every table and state with what is there.

    It goes into `out`, or into a folder beside it that is removed if all is identical. `model` and the corpora, and the `other` model of
    twins, need to be named only if they are not where they were; one that is not what it was is refused before anything is computed.
    `tell` hears of other versions then.

    >>> import headscope as hs, tempfile
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> _ = hs.run("mini", "sampler", ["entropy"], folder, limit=2, replicates=0, gallery=0)
    >>> hs.rerun(folder).identical
    True
    """
    from headscope.comparison import rerun as again
    from headscope.comparison.identical import compare

    then = Results.open(Path(run)) if isinstance(run, str | Path) else results_of(run)
    if then.path is None:
        raise RunError("these results have no folder", "Only what is in a folder can be made again")
    again.refuse(then)
    settings = dict(then.manifest["settings"])
    places = again.Places(then)
    given = {"corpus": corpus, "dev": dev, "look": look}
    corpora = {}
    for name in _CORPORA:
        if (texts := given[name]) is not None:
            named = [texts] if isinstance(texts, str | Path) else texts
            options = {"format": settings["format"], "on_error": settings["on_error"]}
            corpora[name] = named if isinstance(named, Corpus) else read(*named, **options)
        elif settings.get(name):
            corpora[name] = places.corpus(settings[name], name, settings)
        if name in corpora:
            again.require_corpus(then, corpora[name], name)
    kind = _kind(then)
    for name in ("vectors", "run"):
        if settings.get(name) is not None:
            settings[name] = places.find(settings[name]) or settings[name]
    settings["own"] = [_own(name, places) for name in settings.get("own", ())]
    for name in ("own", "cache"):
        if not settings.get(name):
            settings.pop(name, None)
    if then.study is None:
        settings["allow_unknown"] = True  # a run that was finished is not refused
    for name, given_model in (("model", model), ("other", other)):
        if isinstance(given_model, str | Path):
            settings[name] = str(given_model)
        elif given_model is None and name in settings:
            settings[name] = places.find(settings[name]) or settings[name]
    spec = kind.make(settings)
    device = device or _device(then)
    loaded = model if model is not None and not isinstance(model, str | Path) else kind.load(spec, device)
    again.require_model(then, loaded)
    further = {} if "other" not in settings else {"other_model": _other(then, spec, other, loaded, device)}
    for line in again.other_versions(then) if tell is not None else ():
        assert tell is not None
        tell(line)
    target = Path(out) if out is not None else _beside(then.path)
    how: dict[str, Any] = {**corpora, "device": device, "progress": progress, **kind.more(then), **further}
    if then.study is None:
        how |= {"engine": engine, "workers": workers}
    elif engine != "local":
        raise RunError(f"{then.path} is a study, which only this process can make", "Leave --engine out")
    if engine == "local" and getattr(spec, "weights", "trained") == "trained":
        how["model"] = loaded
    try:
        with again.threads_of(then):
            now = kind.work(spec, target, **how)
        same = compare(then, now)
    except BaseException:
        if out is None:
            with suppress(RunError, OSError):
                Folder(target).remove()
        raise
    if same.identical and out is None:
        Folder(target).remove()
    kept = target if out is not None or not same.identical else None
    return again.Rerun(then, now, same, again.circumstances(then, now), kept)


class _Kind:
    """How results of a kind are made: their specification, the model that it asks for, and the work."""

    def __init__(self, make: Callable[[Mapping[str, Any]], Any], work: Callable[..., Results], head: bool = False) -> None:
        self.make, self.work, self._head = make, work, head

    def load(self, spec: Any, device: str | None) -> Model:
        """The model of a specification."""
        from headscope.models.load import load

        head = self._head or getattr(spec, "differentiates", False)
        return load(spec.model, device, spec.dtype, getattr(spec, "random", None), head=head)

    def more(self, then: Results) -> dict[str, Any]:
        """What else is told of how the work is done."""
        if then.study is not None:
            return {}
        from headscope.engine.sample import SIZE

        size = then.manifest.get("made", {}).get("gallery", SIZE)
        return {"gallery": (size or SIZE) if then.manifest.get("gallery") is not None else size}


def _kind(results: Results) -> _Kind:
    """What makes results like these."""
    return _Kind(*kind_of(results.study), head=results.study == "ablation")


def _other(then: Results, spec: Any, other: Model | str | Path | None, model: Model, device: str | None) -> Model:
    """The second model of a study of two, which must be what it was; it may be the first."""
    from headscope.comparison import rerun as again
    from headscope.models.load import load

    expected = then.manifest["identity"]["settings"]["other"]
    if other is not None and not isinstance(other, str | Path):
        loaded = other
    else:
        loaded = model if model.fingerprint == expected else load(spec.other, device, spec.dtype)
    again.require_same(then, "fingerprint", expected, loaded.fingerprint, f"the other model {loaded.name}")
    return loaded


def _own(name: str, places: Any) -> str:
    """Where a measure of the user's own is found: FILE.py:CLASS, where the file is."""
    file, _, cls = name.rpartition(":")
    return f"{places.find(file) or file}:{cls}" if file.endswith(".py") else name


def _device(results: Results) -> str | None:
    """The kind of device that the results were made on, if there is one here."""
    import torch

    kind = results.manifest["identity"]["settings"].get("device")
    return str(kind) if kind == "cpu" or (kind == "cuda" and torch.cuda.is_available()) else None


def _beside(path: Path) -> Path:
    """A folder beside a run that is not there yet."""
    place = path.resolve()
    names = (f"{place.name}.rerun{f'-{number}' if number > 1 else ''}" for number in range(1, 10_000))
    return next(place.with_name(name) for name in names if not place.with_name(name).exists())
