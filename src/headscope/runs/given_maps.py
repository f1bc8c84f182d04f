"""Measure given attention maps: saved by another tool as files, made by hand, or constructed for a test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch
from safetensors import safe_open

from headscope.core.annotation import Annotation
from headscope.core.batch import CLS, SEP, SPECIAL, WORD
from headscope.core.document import Word
from headscope.core.heads import Kind, Site
from headscope.core.paths import problem_of
from headscope.core.suggest import choose_from
from headscope.core.tally import Tally
from headscope.corpora.files import check_archive
from headscope.encoding.choices import ROWS, Rows
from headscope.encoding.texts import Encoded
from headscope.engine.accumulate import Accumulator, BatchView
from headscope.engine.opening import look_first
from headscope.engine.plan import CorpusReading, Plan
from headscope.engine.sample import SIZE, Sample
from headscope.errors import MeasureError
from headscope.gallery.build import attach_gallery
from headscope.measures import make
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import identity, signature
from headscope.results.specification import Role, Specification
from headscope.runs.map_arrays import ROUNDING, map_array, rounding
from headscope.stats.bootstrap import poisson_weights

if TYPE_CHECKING:
    from jaxtyping import Float

# Special tokens of common tokenizers, for maps that come with token strings alone.
_ROLES = {
    **dict.fromkeys(("[CLS]", "<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>"), CLS),
    **dict.fromkeys(("[SEP]", "</s>", "<eos>", "<|end_of_text|>"), SEP),
    **dict.fromkeys(("[PAD]", "<pad>", "[MASK]", "<mask>"), SPECIAL),
}
_ROLE_NAMES = {"word": WORD, "cls": CLS, "sep": SEP, "special": SPECIAL}
_ATTENTION = ("attention", "attn", "attentions", "maps")
_LISTS = ("tokens", "roles", "words")


class MapSpec(Specification):
    """The settings with which `maps`, a number of maps, are measured."""

    maps: Annotated[int, Role.CONTENT]
    preset: str = "recommended"
    word_rows: Rows = "mean"
    causal: bool | None = None
    replicates: int = 500
    seed: int = 0


@dataclass(frozen=True)
class GivenMaps:
    """The maps of one text: `attention` [layers, heads, T, T] and its T `tokens`.

    `roles` are `word`, `cls`, `sep` or `special` (by default derived from the tokens); `words` gives each token the
    number of its word, -1 or None for special ones, and is needed for word-level measures; `annotation` has one Word
    for each of these numbers in order; `document` is the unit that intervals resample; `dtype` tells how exact the
    weights are.
    """

    attention: Float[np.ndarray, "layer head query key"]
    tokens: tuple[str, ...]
    roles: tuple[str, ...] | None = None
    words: tuple[int | None, ...] | None = None
    annotation: tuple[Word, ...] | None = None
    document: str | None = None
    name: str = "maps"
    dtype: str = "float32"  # the original type of the weights

    def checked(self, tally: Tally) -> GivenMaps:
        """These maps; an error if they are not attention maps."""
        a = self.attention
        if a.dtype.kind != "f" or a.ndim != 4 or a.shape[2] != a.shape[3] or 0 in a.shape:
            raise MeasureError(f"{self.name}: attention is {a.dtype} of shape {a.shape}", "Give numbers [layers, heads, T, T] for one text")
        for what, values in (("tokens", self.tokens), ("roles", self.roles), ("words", self.words)):
            if values is not None and len(values) != a.shape[2]:
                raise MeasureError(f"{self.name}: {len(values)} {what} for maps of {a.shape[2]} positions", "Give one for each position")
        if not np.isfinite(a).all() or (a < 0).any():
            raise MeasureError(f"{self.name}: attention holds negative or undefined weights", "Give weights after the softmax, not before")
        sums, most = a.astype(np.float64).sum(-1), rounding(self.dtype)
        if (sums > 1 + most).any():
            raise MeasureError(f"{self.name}: a row sums to {sums.max():.3f}", "Give weights after the softmax, with queries as rows")
        if (sums == 0).any():
            raise MeasureError(f"{self.name}: a row has no weight", "Cut padding off the maps before measuring them")
        if (sums < 1 - most).any():
            tally.add("texts with rows that sum to less than 1 (sinks, or truncated maps)", self.name, read=True)
        if most > ROUNDING:
            digits = "three digits" if self.dtype == "float16" else "two digits" if self.dtype == "bfloat16" else "one digit"
            tally.add(f"texts with maps in {self.dtype}, good to about {digits}", self.name, read=True)
        return self

    def causal(self) -> bool:
        """Whether the maps look causal: no weight above the diagonal, and weights at most places on and below it."""
        below = np.tri(self.attention.shape[-1], dtype=bool)
        return bool(not self.attention[..., ~below].any() and below.sum() > 1 and (self.attention[..., below] > 0).mean() > 0.5)

    def encoded(self, number: int = 0) -> Encoded:
        """The text as an input, without ids. `number` tells it apart from other texts of its name: a text without a
        document is a document.
        """
        roles = tuple(_ROLES.get(token, WORD) for token in self.tokens) if self.roles is None else tuple(map(_role, self.roles))
        words = _word_numbers(self.name, self.words or range(len(roles)), roles)
        roles = tuple(SPECIAL if role == WORD and word < 0 else role for role, word in zip(roles, words, strict=True))
        kept = {word: place for place, word in enumerate(dict.fromkeys(word for word in words if word >= 0))}
        if self.annotation is not None and not all(isinstance(word, Word) for word in self.annotation):
            raise MeasureError(f"{self.name}: annotation holds {type(self.annotation[0]).__name__}s", "Give headscope Words")
        if self.annotation is not None and len(self.annotation) != len(kept):
            raise MeasureError(f"{self.name}: annotation of {len(self.annotation)} words for {len(kept)} words", "Give one Word for each")
        forms = {word: "".join(token.removeprefix("##") for token, w in zip(self.tokens, words, strict=True) if w == word) for word in kept}
        numbers = np.unique(self.tokens, return_inverse=True)[1]  # any ids that distinguish tokens
        return Encoded(
            self.name,
            Annotation.of_sentence(
                self.document or f"{self.name}#{number}", self.annotation or tuple(Word(form) for form in forms.values())
            ),
            numbers,
            np.zeros_like(numbers),
            roles,
            tuple(kept.get(word, -1) for word in words),
            self.tokens,
        )


def _role(name: str) -> int:
    if name not in _ROLE_NAMES:
        raise MeasureError(f"role {name!r} is unknown", choose_from(name, _ROLE_NAMES))
    return _ROLE_NAMES[name]


def _word_numbers(name: str, words: Sequence[object], roles: Sequence[int]) -> list[int]:
    numbers: list[int] = []
    seen: set[int] = set()
    for word, role in zip(words, roles, strict=True):
        if word is not None and not isinstance(word, int | np.integer):
            raise MeasureError(f"{name}: word number {word!r}", "Give whole numbers, and -1 or None for special tokens")
        number = -1 if role != WORD or word is None else int(word)
        if number in seen and number != numbers[-1]:
            raise MeasureError(f"{name}: word {number} continues after another word", "The tokens of a word must follow each other")
        seen |= {number} - {-1}
        numbers.append(number)
    return numbers


def measure_maps(
    texts: Sequence[GivenMaps],
    measures: Mapping[str, Mapping[str, Any]],
    *,
    preset: str = "recommended",
    rows: Rows = "mean",
    causal: bool | None = None,
    replicates: int = 500,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    gallery: int = SIZE,
) -> Results:
    """The results for given maps. `causal` is derived from the maps unless given; it decides baselines and `next`."""
    folder = Folder(Path(out)) if out is not None else None
    if folder is not None:
        look_first(folder, False, overwrite, "Use --overwrite to replace it, or another --out")
    if rows not in ROWS:
        raise MeasureError(f"rows is {rows!r}", choose_from(rows, ROWS))
    tally = Tally()
    checked = [text.checked(tally) for text in texts]
    if not checked:
        raise MeasureError("no maps were given", "Give at least one text")
    built = [make(name, options, preset) for name, options in measures.items()]
    if any(measure.level == "word" for measure in built) and any(text.words is None for text in checked):
        raise MeasureError("word-level measures need the tokens of each word", "Give words=, one number per token")
    for measure in built:
        if measure.slope() is not None:
            raise MeasureError(f"{measure.name} needs gradients, which do not come with maps", "Run it on a model and a corpus")
        if measure.needs in ("mentions", "passages or keyphrases"):
            raise MeasureError(f"{measure.name} needs {measure.needs}, which do not come with maps", "Run it on a corpus")
        if measure.needs == "trees" and not any(
            word.head is not None and word.relation for text in checked for word in text.annotation or ()
        ):
            raise MeasureError(
                f"{measure.name} needs annotated words", "Give annotation=, a headscope Word with head and relation for each word"
            )
    shapes = {text.attention.shape[:2] for text in checked}
    if len(shapes) > 1:
        raise MeasureError(f"maps of different models: {sorted(shapes)} layers and heads", "Measure each model separately")
    layers, heads = shapes.pop()
    if causal is None:
        causal = all(text.causal() for text in checked)
    plan = Plan.make(built, [Site("decoder" if causal else "encoder", layer, heads, heads, "given") for layer in range(layers)])
    accumulator = Accumulator(plan, replicates, seed)
    weigh = partial(poisson_weights, replicates=replicates, seed=seed)
    digest = hashlib.sha256()
    sample = Sample(gallery, plan.layout)
    by_name: dict[str, GivenMaps] = {}
    for number, text in enumerate(checked):
        name = text.name if text.name not in by_name else f"{text.name}#{number + 1}"
        encoded = replace(text.encoded(number), id=name)
        by_name[name] = text
        sample.add(encoded)
        view = BatchView([encoded], rows, weigh)
        for layer, maps in enumerate(text.attention):
            accumulator.add(view, layer, _tensor(maps))
        digest.update(np.ascontiguousarray(text.attention).tobytes())
        annotated = [astuple(word) for word in text.annotation or ()]
        digest.update(json.dumps([text.tokens, text.roles, text.words, text.document, annotated]).encode())
    # Only documents with names are recorded: a number in the order of the texts is not a name.
    names = sorted({text.document for text in checked if text.document is not None})
    documents = {"documents": hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]} if names else {}
    spec = MapSpec(maps=len(checked), preset=preset, word_rows=rows, causal=causal, replicates=replicates, seed=seed)
    now = {**identity(spec, "cpu", {"maps": digest.hexdigest()}, built), **documents}
    manifest = {
        "signature": signature(spec, now, built),
        "settings": spec.model_dump(mode="json", exclude={"maps"}),
        "identity": now,
        "capture": "given maps",
        "counts": {"texts": len(checked)},
        "read": tally.lines(read=True),
        "dropped": tally.lines(read=False),
    }

    def look(texts: Sequence[Encoded]) -> Iterator[tuple[Encoded, dict[Kind, torch.Tensor]]]:
        for text in texts:
            attention = by_name[text.id].attention
            yield text, {plan.layout.sites[0].kind: _tensor(attention.reshape(-1, *attention.shape[2:]))[0]}

    with folder.locked() if folder is not None else nullcontext():
        if folder is not None:
            folder.clear()
        results = Results.make(manifest, built, accumulator.states, plan.layout, folder)
        return (
            attach_gallery(results, plan, [(CorpusReading("sentence", "drop", frozenset(measures)), sample)], look, rows)
            if gallery
            else results
        )


def _tensor(maps: Float[np.ndarray, "head query key"]) -> Float[torch.Tensor, "1 head query key"]:
    return torch.from_numpy(np.array(maps[None], dtype=np.float32))


def read_maps(path: str | Path) -> GivenMaps:
    """Maps from an `.npz` or a `.safetensors` file: `attention` (or `attn`) [layers, heads, T, T] and `tokens`.

    `words`, `roles` and `document` are optional. In a safetensors file, texts are in the metadata, and lists as JSON.
    """
    path = Path(path)
    if problem := problem_of(path):
        raise MeasureError(f"{path}: {problem[0]}", problem[1])
    if path.suffix not in (".npz", ".safetensors"):
        raise MeasureError(f"{path} has an unknown format", "Save maps as .npz or .safetensors")
    if path.suffix == ".npz":
        check_archive(path)
    try:
        arrays = _read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)
    except Exception as error:  # numpy and safetensors raise many kinds for a damaged file
        raise MeasureError(
            f"{path} cannot be read ({type(error).__name__})", "Save maps as .npz without objects, or .safetensors"
        ) from None
    name = next((name for name in _ATTENTION if name in arrays), None)
    if name is None or "tokens" not in arrays:
        raise MeasureError(f"{path} has no maps with tokens", "It needs an array `attention` [layers, heads, T, T] and `tokens`")
    lists: dict[str, Any] = {}
    for key in (key for key in _LISTS if key in arrays):
        values = arrays[key].tolist() if isinstance(arrays[key], np.ndarray) else arrays[key]
        if not isinstance(values, list) or (key == "roles" and not all(isinstance(value, str) for value in values)):
            raise MeasureError(f"{path}: `{key}` is not a valid list", "Give one for each position")
        lists[key] = tuple(values)
    lists["tokens"] = tuple(map(str, lists["tokens"]))
    document = str(arrays["document"]) if "document" in arrays else None
    array, dtype = map_array(arrays[name])
    return GivenMaps(array, name=path.stem, document=document, dtype=dtype, **lists)


def _read_npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        return {name: file[name] for name in file.files if name in (*_ATTENTION, *_LISTS, "document")}


def _read_safetensors(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as file:  # NumPy has no bfloat16
        entries: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys() if name in (*_ATTENTION, "words")}  # noqa: SIM118 - not a mapping
        entries |= {name: words.numpy() for name, words in entries.items() if name == "words"}
        for name, text in (file.metadata() or {}).items():
            if name in _LISTS:
                entries[name] = json.loads(text)
            elif name == "document":
                entries[name] = text
        return entries
