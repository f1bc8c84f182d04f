"""Measuring attention maps that are already there: saved by another tool, made by hand, or planted in a test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.core.batch import CLS, SEP, SPECIAL, WORD
from headscope.core.document import Word
from headscope.core.heads import HeadLayout, Site
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoded
from headscope.encoding.words import Rows
from headscope.errors import MeasureError, RunError
from headscope.measures import Measure, make
from headscope.runs.results import Results
from headscope.runs.shard import Accumulator, BatchView
from headscope.runs.signature import versions
from headscope.runs.store import Folder
from headscope.runs.table import Table
from headscope.stats.bootstrap import poisson_weights

if TYPE_CHECKING:
    from jaxtyping import Float

# Special tokens as the common tokenizers write them. Only for maps that come with nothing but token strings.
_ROLES = {
    **dict.fromkeys(("[CLS]", "<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>"), CLS),
    **dict.fromkeys(("[SEP]", "</s>", "<eos>", "<|end_of_text|>"), SEP),
    **dict.fromkeys(("[PAD]", "<pad>", "[MASK]", "<mask>"), SPECIAL),
}
_ROLE_NAMES = {"word": WORD, "cls": CLS, "sep": SEP, "special": SPECIAL}
_NAMES = ("attention", "attn", "attentions", "maps")


@dataclass(frozen=True)
class Maps:
    """The maps of one text: `attention` [layers, heads, T, T] and its T `tokens`.

    `roles` are `word`, `cls`, `sep` or `special` (by default read off the tokens); `words` gives each token the number of its
    word, -1 or None for special ones, and is needed for word-level measures; `document` is what intervals resample.
    """

    attention: Float[np.ndarray, "layer head query key"]
    tokens: tuple[str, ...]
    roles: tuple[str, ...] | None = None
    words: tuple[int | None, ...] | None = None
    annotation: tuple[Word, ...] | None = None
    document: str | None = None
    name: str = "maps"

    def checked(self, tally: Tally) -> Maps:
        """These maps, if they are attention maps at all."""
        a = self.attention
        if a.ndim != 4 or a.shape[2] != a.shape[3] or a.shape[2] == 0:
            raise MeasureError(f"{self.name}: attention has shape {a.shape}", "Give [layers, heads, T, T] for one text")
        for what, values in (("tokens", self.tokens), ("roles", self.roles), ("words", self.words)):
            if values is not None and len(values) != a.shape[2]:
                raise MeasureError(f"{self.name}: {len(values)} {what} for maps of {a.shape[2]} positions", "Give one for each position")
        if not np.isfinite(a).all() or (a < 0).any():
            raise MeasureError(f"{self.name}: attention holds negative or undefined weights", "Give weights after the softmax, not before")
        sums = a.astype(np.float64).sum(-1)
        if (sums > 1.01).any():
            raise MeasureError(f"{self.name}: a row sums to {sums.max():.3f}", "Give weights after the softmax, with queries as rows")
        if (sums < 0.99).any():
            tally.add("texts with rows that sum to less than 1 (sinks, or cut maps)", self.name)
        if a.dtype == np.float16:
            tally.add("texts with maps in float16, good to about three digits", self.name)
        return self

    def encoded(self) -> Encoded:
        """The text as an input, without ids."""
        names = self.roles
        roles = tuple(_ROLES.get(token, WORD) for token in self.tokens) if names is None else tuple(map(_role, names))
        words = [-1 if role != WORD or word is None else word for role, word in zip(roles, self.words or range(len(roles)), strict=True)]
        kept = {word: place for place, word in enumerate(sorted({word for word in words if word >= 0}))}
        forms = {word: "".join(token.removeprefix("##") for token, w in zip(self.tokens, words, strict=True) if w == word) for word in kept}
        zeros = np.zeros(len(roles), dtype=np.int64)
        return Encoded(
            self.name,
            self.document or self.name,
            self.annotation or tuple(Word(form) for form in forms.values()),
            zeros,
            zeros,
            roles,
            tuple(kept.get(word, -1) for word in words),
            self.tokens,
        )


def _role(name: str) -> int:
    if name not in _ROLE_NAMES:
        raise MeasureError(f"role {name!r} is unknown", f"Use one of {', '.join(_ROLE_NAMES)}")
    return _ROLE_NAMES[name]


def measure_maps(
    texts: Iterable[Maps],
    measures: Mapping[str, Mapping[str, Any]],
    *,
    preset: str = "recommended",
    rows: Rows = "mean",
    causal: bool | None = None,
    replicates: int = 500,
    seed: int = 0,
    out: Path | None = None,
    overwrite: bool = False,
) -> Results:
    """The tables of given maps. `causal` is read off the maps unless said: nothing above the diagonal in any of them."""
    tally = Tally()
    checked = [text.checked(tally) for text in texts]
    if not checked:
        raise MeasureError("there are no maps to measure", "Give at least one text")
    built = [make(name, options, preset) for name, options in measures.items()]
    if any(measure.level == "word" for measure in built) and any(text.words is None for text in checked):
        raise MeasureError("word-level measures need to know which tokens make a word", "Give words=, one number a token")
    shapes = {text.attention.shape[:2] for text in checked}
    if len(shapes) > 1:
        raise MeasureError(f"maps of different models: {sorted(shapes)} layers and heads", "Measure each model on its own")
    layers, heads = shapes.pop()
    if causal is None:
        causal = all(not np.triu(text.attention, 1).any() for text in checked)
    layout = HeadLayout(tuple(Site("decoder" if causal else "encoder", layer, heads, heads, "given") for layer in range(layers)))
    accumulator = Accumulator(built, layout, replicates)
    digest = hashlib.sha256()
    for number, text in enumerate(checked):
        encoded = text.encoded()
        weights = poisson_weights([text.document or f"{text.name}#{number}"], replicates, seed)
        view = BatchView([encoded], rows, torch.device("cpu"))
        for layer, maps in enumerate(text.attention):
            accumulator.add(view, layer, torch.from_numpy(np.array(maps[None], dtype=np.float32)), weights)
        digest.update(np.ascontiguousarray(text.attention).tobytes())
        digest.update(json.dumps([text.tokens, text.roles, text.words]).encode())
    results = _results(built, accumulator, layout, digest.hexdigest(), len(checked), tally, preset, seed, replicates)
    if out is None:
        return results
    folder = Folder(out)
    with folder.locked():
        if overwrite:
            folder.clear()
        elif folder.manifest.exists() or folder.foreign():
            raise RunError(f"{out} is not empty", "Use --overwrite to replace the run in it, or another --out")
        folder.finish(dict(results), accumulator.states, results.manifest)
    return Results.open(out)


def _results(
    measures: Sequence[Measure],
    accumulator: Accumulator,
    layout: HeadLayout,
    digest: str,
    texts: int,
    tally: Tally,
    preset: str,
    seed: int,
    replicates: int,
) -> Results:
    signature = f"headscope:{versions()['headscope']}|maps:{texts}@{digest[:8]}|preset:{preset}|replicates:{replicates}|seed:{seed}"
    manifest = {
        "status": "complete",
        "signature": signature,
        "identity": {"settings": {"measures": {m.name: m.options() for m in measures}}, "maps": digest, "versions": versions()},
        "sites": [{"kind": s.kind, "layer": s.layer + 1, "heads": s.heads, "kv_heads": s.kv_heads} for s in layout.sites],
        "capture": "given maps",
        "counts": {"texts": texts},
        "dropped": tally.lines(),
    }
    tables = {
        name: Table.of(columns, {"signature": signature})
        for measure in measures
        for name, columns in measure.tables(accumulator.states[measure.name], layout).items()
    }
    return Results(manifest, tables)


def read_maps(path: str | Path) -> Maps:
    """Maps from an `.npz` (arrays `attn` or `attention` and `tokens`) or a `.safetensors` file (tokens as JSON in its metadata)."""
    path = Path(path)
    if not path.is_file():
        raise MeasureError(f"{path} does not exist", "Name an .npz or .safetensors file")
    try:
        if path.suffix == ".npz":
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files if name in (*_NAMES, "tokens", "words", "roles")}
        elif path.suffix == ".safetensors":
            from safetensors import safe_open

            with safe_open(path, framework="numpy") as file:
                arrays = {name: file.get_tensor(name) for name in file.keys() if name in (*_NAMES, "words")}  # noqa: SIM118
                arrays |= {name: json.loads(text) for name, text in (file.metadata() or {}).items() if name in ("tokens", "words", "roles")}
        else:
            raise MeasureError(f"{path} is of an unknown kind", "Save maps as .npz or .safetensors")
    except MeasureError:
        raise
    except Exception as error:
        raise MeasureError(f"{path} cannot be read ({error})", "Save maps as .npz without pickled objects, or as .safetensors") from None
    name = next((name for name in _NAMES if name in arrays), None)
    if name is None or "tokens" not in arrays:
        raise MeasureError(f"{path} holds no maps with tokens", "It needs an array `attention` [layers, heads, T, T] and `tokens`")
    extra: dict[str, Any] = {key: tuple(np.asarray(arrays[key]).tolist()) for key in ("roles", "words") if key in arrays}
    return Maps(np.asarray(arrays[name]), tuple(map(str, np.asarray(arrays["tokens"]).tolist())), name=path.stem, **extra)
