"""A finished run: its tables and what they depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from headscope.core.heads import HeadId, HeadLayout, Site
from headscope.core.maps import WEIGHTS
from headscope.core.profile import timing
from headscope.core.state import State, States
from headscope.core.suggest import choose_from
from headscope.errors import HeadscopeError, RunError, StaleError
from headscope.measures import Measure
from headscope.measures.base import Columns
from headscope.results.files import checksum
from headscope.results.folder import STATES, Folder, read_states
from headscope.results.gallery import REMEDY, Gallery
from headscope.results.signature import describe
from headscope.results.slices import SUFFIX, SliceStates, SliceTables, complete_slices, manifest_of, named_slice
from headscope.results.special_tokens import SpecialTokens
from headscope.results.table import Table

if TYPE_CHECKING:
    from headscope.results.head_labels import HeadLabels

# The baseline of a measure in a few words; even attention for all others.
BASELINES = {"trees": "chain of words", "distances": "all pairs"}
GALLERY = "gallery.safetensors"
LEFT_OUT = "gallery left out"  # the beginning of the line in the manifest that says why
# The entries of `run.json` that a complete run must have, those that it may have, and their types.
_KINDS = {"signature": str, "settings": dict, "measures": dict, "tables": list, "sites": list, "counts": dict}
_IF_SAID = {
    "identity": dict,
    "dropped": list,
    "read": list,
    "warnings": list,
    "unknown_tokens": dict,
    "readings": list,
    "notes": list,
    "study": str,
    "files": dict,
    "slices": dict,
}
_MOST = 10_000  # layers, or heads of a layer: larger numbers are refused, since lists of this length are made
_SITE = {"kind": str, "layer": int, "heads": int}
P = ParamSpec("P")
T = TypeVar("T")


class Results(Mapping[str, Table]):
    """Tables by name, with the manifest of where they come from; in memory or read from a folder."""

    def __init__(
        self,
        manifest: Mapping[str, Any],
        tables: Mapping[str, Table],
        path: Path | None = None,
        gallery: Gallery | None = None,
        states: Mapping[str, State] | None = None,
        slices: Mapping[str, Table] | None = None,
    ) -> None:
        self.manifest = manifest
        self.path = path
        self._tables = tables
        self._gallery = gallery
        self._states = states
        self._slices = slices or {}

    @classmethod
    def make(
        cls,
        manifest: Mapping[str, Any],
        measures: Sequence[Measure],
        states: States,
        layout: HeadLayout,
        folder: Folder | None,
        more: Mapping[str, Columns] | None = None,
    ) -> Results:
        """The results of merged states, written to `folder` if there is one. `more` are tables of no measure."""
        metadata = {"signature": manifest["signature"]}
        with timing("tables, and their intervals from the bootstrap"):
            made = {name: columns for measure in measures for name, columns in measure.tables(states[measure.name], layout).items()}
            tables = {name: Table.of(columns, metadata) for name, columns in {**made, **(more or {})}.items()}
        slices: dict[str, Table] = {}
        warnings = [*manifest.get("warnings", ()), *uncounted(measures, states, layout, made)]
        if "slices" in manifest:
            with timing("tables of slices"):
                said, columns_of = complete_slices(manifest, measures, states, layout)
                slices = {f"{name}{SUFFIX}": Table.of(columns, metadata) for name, columns in columns_of.items()}
            manifest = {**manifest, "slices": said}
            warnings += [f"{name} has no slices: its update does not use State.split." for name in said["undivided"]]
        sites = [{"kind": s.kind, "layer": s.layer + 1, "heads": s.heads, "kv_heads": s.kv_heads} for s in layout.sites]
        complete = {**manifest, "status": "complete", "measures": describe(measures), "tables": list(tables), "sites": sites}
        complete["warnings"] = warnings
        if folder is not None:
            with timing("writing"):
                complete = folder.finish({**tables, **slices}, states, complete)
        return cls(complete, tables, folder.path if folder is not None else None, states=states, slices=slices)

    def with_gallery(self, curate: Callable[[Mapping[str, Table]], Gallery | None], notes: Sequence[str] = ()) -> Results:
        """These results with the gallery that `curate` makes from their tables, written to their folder if they have
        one.

        If the gallery fails, the results are complete without it. `notes`, and the reason if it failed, are added to
        the manifest.
        """
        gallery = None
        files = {name: sum for name, sum in self.manifest.get("files", {}).items() if name != GALLERY}
        dropped = [*(line for line in self.manifest["dropped"] if not line.startswith(LEFT_OUT)), *notes]
        try:
            made = curate(self._tables)
            if made is not None and self.path is not None:
                data = made.encode()
                Folder(self.path).write(GALLERY, data)
                files[GALLERY] = checksum(data)
            gallery = made
        except Exception as error:  # any error: hours of work must not be lost because of it
            dropped.append(f"{LEFT_OUT} ({type(error).__name__}: {error})")
        manifest = {**self.manifest, "dropped": dropped, "gallery": None, **({"files": files} if files else {})}
        if gallery is not None:  # recorded, so that readers who opened the run before notice it
            manifest["gallery"] = {"texts": len(gallery.texts), "stacks": len(gallery.stacks), "examples": len(gallery.examples)}
        if self.path is not None and manifest != self.manifest:
            Folder(self.path).write_manifest(manifest)
        return type(self)(manifest, self._tables, self.path, gallery, self._states, self._slices)

    @classmethod
    def open_run(cls, path: Path) -> Results:
        """The results in a folder, which must be those of a run, not of a study."""
        results = cls.open(path)
        if results.study is not None:
            raise RunError(f"{path} holds a study of {results.study}, not a run", "Use headscope show, plot or report")
        return results

    @property
    def study(self) -> str | None:
        """The name of the kind of study; None for a run."""
        return self.manifest.get("study")

    @property
    def layout(self) -> HeadLayout:
        """The places of the heads on the head axis of the states."""
        sites = self.manifest["sites"]
        return HeadLayout(tuple(Site(site["kind"], site["layer"] - 1, site["heads"], site["kv_heads"], "") for site in sites))

    def head_of(self, row: Mapping[str, Any]) -> HeadId:
        """The head of a row of a table. It prints without its kind if the model has only one kind of attention."""
        return HeadId.of_row(row, self.layout.one_kind)

    @classmethod
    def open(cls, path: Path) -> Results:
        """The results in a folder, of a run or of a study."""
        folder = Folder(path)
        manifest = folder.read_manifest()
        if manifest.get("status") != "complete":
            raise RunError(f"the run in {path} is not finished", "Run the same command with --resume to continue it")
        check_complete(manifest, path)
        slices = _Lazy(folder, manifest, [f"{name}{SUFFIX}" for name in manifest.get("slices", {}).get("tables", ())])
        return cls(manifest, _Lazy(folder, manifest, manifest["tables"]), path, slices=slices)

    def by_slice(self, name: str) -> Table:
        """A table for all slices of the run; the first column is the slice of each row."""
        if "slices" in self.manifest and f"{name}{SUFFIX}" not in self._slices:
            raise RunError(f"the run has no table {name!r} of slices", choose_from(name, self.manifest["slices"]["tables"], "It has"))
        return self._slices[f"{name}{SUFFIX}"]

    def slice(self, **choice: object) -> Results:
        """The results of the documents of one slice, as in `slice(genre="news")`."""
        value = named_slice(self, choice)
        return Results(manifest_of(self.manifest, value), SliceTables(self, value), states=SliceStates(self, value))

    def check(self) -> None:
        """Raise an error if the folder that the results were opened from now holds another run."""
        if isinstance(self._tables, _Lazy):
            self._tables.folder.expect(self.manifest)

    def state(self, measure: str) -> State:
        """The merged state of a measure, from which its tables are made."""
        if self._states is None:
            self.check()
            folder = Folder(self.path or Path())
            try:
                folder.read(STATES, self.manifest, "Intervals of differences need this file: run again with --overwrite")
                states, _ = read_states(folder.path / STATES)
            finally:
                self.check()
            self._states = states
        return self._states[measure]

    @property
    def signature(self) -> str:
        """The line that says what was measured, on what, and how."""
        return str(self.manifest["signature"])

    @property
    def warnings(self) -> list[str]:
        """Warnings to read before a number is used: unknown tokens, and measures that counted nothing."""
        return list(self.manifest.get("warnings", ()))

    @property
    def annotation(self) -> str | None:
        """The parser that made the annotation of the corpus, or of a part of it; None if no mark says so."""
        annotation: str | None = self.manifest.get("identity", {}).get("annotation")
        return annotation

    @property
    def map(self) -> str:
        """The kind of the measured maps: `weights`, `norm` or `value-zeroing`."""
        return str(self.manifest["settings"].get("map", WEIGHTS))

    @property
    def measures(self) -> dict[str, dict[str, Any]]:
        """The measures of the run, in its order, each with the options in force."""
        return dict(self.manifest["measures"])

    @cached_property
    def gallery(self) -> Gallery | None:
        """Example texts with maps, and distances between heads; None for a run without a gallery."""
        if self._gallery is None and self.path is not None and (path := Folder(self.path).gallery).is_file():
            try:
                Folder(self.path).read(GALLERY, self.manifest, REMEDY)
                return Gallery.read(path, self.layout.one_kind)
            finally:
                self.check()  # a damaged gallery may belong to a run that replaces this one
        return self._gallery

    @cached_property
    def special_tokens(self) -> SpecialTokens:
        """The names of the special tokens of the model."""
        try:
            gallery = self.gallery
        except StaleError:
            raise
        except RunError:  # damaged: the views that show the gallery report it
            gallery = None
        return SpecialTokens.of(self.layout, self, gallery)

    @cached_property
    def head_labels(self) -> HeadLabels:
        """The types of its heads, from all that the run measured."""
        from headscope.results.head_labels import head_labels

        return head_labels(self)

    def spelled(self, text: str) -> str:
        """A text that names [CLS] and [SEP], with the model's own tokens in their place."""
        return self.special_tokens.spelled(text)

    def of_heads(self) -> dict[str, Table]:
        """The tables with one row per head and quantity."""
        return {name: self[name] for name in self if {"head", "quantity"} <= set(self[name].columns)}

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            raise RunError(f"the run has no table {name!r}", choose_from(name, self, "It has"))
        return self._tables[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


class _Lazy(Mapping[str, Table]):
    """The tables of a folder, each read on first access, and refused if it is not of the run that was opened."""

    def __init__(self, folder: Folder, manifest: Mapping[str, Any], names: Iterable[str]) -> None:
        self.folder = folder
        self._manifest = manifest
        self._names = tuple(names)
        self._read: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._read:
            try:
                table = self.folder.read_table(name, self._manifest)
            finally:
                self.folder.expect(self._manifest)
            if table.metadata.get("signature", self._manifest["signature"]) != self._manifest["signature"]:
                raise RunError(f"the table {name} in {self.folder.path} is of another run", "Run again with --overwrite")
            self._read[name] = table
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def uncounted(measures: Sequence[Measure], states: States, layout: HeadLayout, tables: dict[str, Columns]) -> list[str]:
    """A warning, with what to check, for each measure whose table of heads has no row with an n above 0."""
    sentences = []
    for measure in measures:
        columns = tables.get(measure.name, {})
        if "n" not in columns or any(columns["n"]):
            continue
        most = max((int(n.max()) for _, n in measure.glimpse(states[measure.name], layout).values() if len(n)), default=0)
        least = measure.options().get("least")
        if most and least is not None:
            remedy = f"Use more texts, or a smaller -O {measure.name}.least"
            sentences.append(f"{measure.name} lists no label: none has {least} cases (the most frequent has {most}). {remedy}.")
        else:
            where = f"at level {measure.level}" + (f", by {measure.unit}" if measure.unit is not None else "")
            sentences.append(
                f"{measure.name} counted nothing: n is 0 for every head. Check that the texts have what it looks for ({where}), and "
                "that none of it is cut off or left out."
            )
    return sentences


def check_complete(manifest: Mapping[str, Any], path: Path) -> None:
    """Raise an error that names the entries that are missing or invalid in a manifest."""
    wrong = [name for name, kind in _KINDS.items() if not isinstance(manifest.get(name), kind)]
    wrong += [name for name, kind in _IF_SAID.items() if not isinstance(manifest.get(name, kind()), kind)]
    if not wrong and not all(isinstance(name, str) for name in manifest["tables"]):
        wrong = ["tables"]
    if not wrong and not (manifest["sites"] and all(map(_is_site, manifest["sites"]))):
        wrong = ["sites"]
    if wrong:
        problem = f"the run.json in {path} has invalid values of {', '.join(wrong)}"
        raise RunError(problem, "It was edited or truncated: run again with --overwrite")


def _is_site(site: object) -> bool:
    if not isinstance(site, dict) or not all(isinstance(site.get(name), kind) for name, kind in _SITE.items()):
        return False
    return all(1 <= site[name] <= _MOST for name in ("layer", "heads"))


def blame_folder(function: Callable[P, T]) -> Callable[P, T]:
    """Turn an error raised while results are read into a RunError that names their folders.

    If a run.json or a table was edited, the code that uses it can fail anywhere and with any kind of error. Errors
    about results without a folder are not changed.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except HeadscopeError:
            raise
        except Exception as error:
            arguments = (*args, *kwargs.values())
            listed = (item for value in arguments for item in (value if isinstance(value, list | tuple) else [value]))
            paths = (item.path for item in listed if isinstance(item, Results))
            folders = " or ".join(dict.fromkeys(str(path) for path in paths if path is not None))
            if not folders:
                raise
            message = (str(error).strip() or "no message").splitlines()[0][:200]
            raise RunError(
                f"{folders} is damaged or was edited ({type(error).__name__}: {message})",
                "Run again with --overwrite; if nobody edited the folder, this is a bug of headscope",
            ) from error

    return call
