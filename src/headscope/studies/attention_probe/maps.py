"""Attention between the words of sentences and the root, from all heads; and sentences as padded tensors."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from headscope.core.annotation import ROOT
from headscope.core.batch import CLS, SEP, WORD
from headscope.core.heads import HeadId, Kind
from headscope.encoding.batches import batches, grouped
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded
from headscope.encoding.words import WordGroups, word_map
from headscope.errors import RunError
from headscope.models.model import Model

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    Map = Float[torch.Tensor, "position position head"]

SPECIALS = 2  # positions before the words: the start and the end of the text, which together represent the root
_FLOAT = 4  # bytes
UNSCORED = -1  # in place of a governor: the word has none


class Maps:
    """A reader of a model's attention as maps [from, to, head] between `start`, `end` and the words of a sentence, in
    this order. If the model has no start or end token, its row and column are zeros.
    """

    def __init__(self, model: Model, rows: Rows = "mean", batch_tokens: int = 2048) -> None:
        self.model, self.rows, self.batch_tokens = model, rows, batch_tokens
        self.kind = _kind(model)
        self.sites = [number for number, site in enumerate(model.sites) if site.kind == self.kind]
        self.heads: list[HeadId] = [head for head in model.layout.ids() if head.kind == self.kind]

    def of(self, texts: Sequence[Encoded]) -> list[Map]:
        """The maps of each text, in the given order; batching does not change them."""
        by_place: dict[int, Map] = {}
        places = {id(text): number for number, text in enumerate(texts)}
        for batch in batches(texts, self.batch_tokens):
            for text, maps in zip(batch, self._batch(batch), strict=True):
                size = len(text.words) + SPECIALS
                by_place[places[id(text)]] = maps[:size, :size]
        return [by_place[number] for number in range(len(texts))]

    def _batch(self, texts: Sequence[Encoded]) -> Float[torch.Tensor, "text position position head"]:
        device = self.model.device
        groups = WordGroups.build(texts, device)
        places, there = self._places(groups)
        width = places.shape[1]
        maps = torch.zeros(len(texts), width, width, len(self.heads), device=device)
        first = dict(zip(self.sites, self._firsts(), strict=True))

        def take(index: int, weights: torch.Tensor, visible: object, again: object) -> None:
            weights = weights.float()
            words = word_map(weights.masked_fill((groups.of < 0)[:, None, :, None], 0), groups, groups, self.rows)
            _, heads, _, columns = words.shape
            words = words.gather(2, places[:, None, :, None].expand(-1, heads, -1, columns))
            words = words.gather(3, places[:, None, None, :].expand(-1, heads, width, -1))
            words = words * (there[:, None, :, None] & there[:, None, None, :])
            maps[..., first[index] : first[index] + heads] = words.permute(0, 2, 3, 1)

        self.model.stream(self.model.inputs(texts), take, frozenset(self.sites))
        return maps

    def _firsts(self) -> list[int]:
        sizes = [self.model.sites[site].heads for site in self.sites]
        return [sum(sizes[:number]) for number in range(len(sizes))]

    def _places(self, groups: WordGroups) -> tuple[Int[torch.Tensor, "text position"], Bool[torch.Tensor, "text position"]]:
        """The places of the start, the end and the words of each text in its word map, and whether they exist."""
        roles = groups.side.roles.tolist()
        width = SPECIALS + max(row.count(WORD) for row in roles)
        places, there = torch.zeros(len(roles), width, dtype=torch.int64), torch.zeros(len(roles), width, dtype=torch.bool)
        for number, row in enumerate(roles):
            words = [place for place, role in enumerate(row) if role == WORD]
            start = next((place for place, role in enumerate(row) if role == CLS), None)
            end = next((place for place in reversed(range(len(row))) if row[place] == SEP), None)
            for position, place in enumerate((start, end, *words)):
                if place is not None:
                    places[number, position], there[number, position] = place, True
        return places.to(self.model.device), there.to(self.model.device)

    @property
    def specials(self) -> tuple[bool, bool]:
        """Whether the model puts special tokens before a text, and after it."""
        template = self.model.tokenizer.single
        return bool(template.before), bool(template.after)


def _kind(model: Model) -> Kind:
    """The kind of attention that is probed: that of the encoder if the model has one."""
    kinds = [site.kind for site in model.sites]
    for kind in ("encoder", "decoder"):
        if kind in kinds:
            return kind
    raise RunError(f"{model.name} has no self-attention to probe", "Use a model with encoder or decoder self-attention")


class Store:
    """The maps of many texts: computed on demand, and kept if all of them fit into `limit` bytes.

    On a CPU they are kept in a temporary file that is mapped into memory. On a GPU they are kept in its memory, if
    they take at most half of what is free.
    """

    def __init__(self, maps: Maps, texts: Sequence[Encoded], limit: int, again: bool = True) -> None:
        self.maps, self.texts = maps, texts
        sizes = [(len(text.words) + SPECIALS) ** 2 * len(maps.heads) for text in texts]
        self.bytes = sum(sizes) * _FLOAT
        self._ends = torch.tensor([0, *sizes]).cumsum(0).tolist()
        self._done = [False] * len(texts)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._kept: torch.Tensor | None = None
        if maps.model.device.type == "cuda":
            limit = min(limit, torch.cuda.mem_get_info(maps.model.device)[0] // 2)
        if again and 0 < self.bytes <= limit:
            self._kept = self._room()

    @property
    def keeps(self) -> bool:
        """Whether maps are kept."""
        return self._kept is not None

    def _room(self) -> torch.Tensor:
        size = self.bytes // _FLOAT
        if self.maps.model.device.type != "cpu":
            return torch.empty(size, device=self.maps.model.device)
        self._folder = tempfile.TemporaryDirectory(prefix="headscope-maps-")
        return torch.from_file(str(Path(self._folder.name) / "maps"), shared=True, size=size, dtype=torch.float32)

    def get(self, numbers: Sequence[int]) -> list[Map]:
        """The maps of the texts of these numbers."""
        missing = [number for number in numbers if not self._done[number]]
        fresh = dict(zip(missing, self.maps.of([self.texts[number] for number in missing]), strict=True)) if missing else {}
        if self._kept is None:
            return [fresh[number] for number in numbers]
        for number, maps in fresh.items():
            self._kept[self._ends[number] : self._ends[number + 1]] = maps.reshape(-1)
            self._done[number] = True
        return [self._view(number) for number in numbers]

    def _view(self, number: int) -> Map:
        assert self._kept is not None
        size = len(self.texts[number].words) + SPECIALS
        return self._kept[self._ends[number] : self._ends[number + 1]].view(size, size, len(self.maps.heads))

    def ahead(self, steps: Sequence[Sequence[int]]) -> Iterator[tuple[Sequence[int], list[Map]]]:
        """The maps for each of several steps, computed for as many steps at once as fill a batch of the model."""
        window: list[Sequence[int]] = []
        tokens = 0
        for number, step in enumerate(steps):
            window.append(step)
            tokens += sum(self.texts[text].cost for text in step)
            if tokens >= self.maps.batch_tokens or number == len(steps) - 1:
                maps = iter(self.get([text for waiting in window for text in waiting]))
                for waiting in window:
                    yield waiting, [next(maps) for _ in waiting]
                window, tokens = [], 0

    def close(self) -> None:
        """Delete the kept maps."""
        self._kept = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence as probes read it: its words' rows in the table of vectors, and their governors among the candidates.

    Candidate 0 is the root, candidate j the j-th word.
    """

    forms: Int[torch.Tensor, "word"]
    gold: Int[torch.Tensor, "word"]

    @classmethod
    def of(cls, text: Encoded, rows: Sequence[int]) -> ParsedSentence:
        """The sentence of a text whose words have these rows."""
        gold = [head + 1 if head >= 0 else 0 if head == ROOT else UNSCORED for head in text.annotation.heads]
        return cls(torch.tensor(rows, dtype=torch.int64), torch.tensor(gold, dtype=torch.int64))

    def __len__(self) -> int:
        return len(self.gold)


@dataclass(frozen=True)
class SentenceBatch:
    """Padded sentences, and the maps of each, if there are any."""

    gold: Int[torch.Tensor, "text word"]
    forms: Int[torch.Tensor, "text word"]
    sizes: Int[torch.Tensor, "text"]
    maps: Sequence[Map] | None = None

    @classmethod
    def of(cls, sentences: Sequence[ParsedSentence], maps: Sequence[Map] | None, device: torch.device) -> SentenceBatch:
        """Some sentences, with their maps if there are any."""
        width = max(map(len, sentences))
        gold = torch.full((len(sentences), width), UNSCORED)
        forms = torch.zeros(len(sentences), width, dtype=torch.int64)
        for row, sentence in enumerate(sentences):
            gold[row, : len(sentence)] = sentence.gold
            forms[row, : len(sentence)] = sentence.forms
        sizes = torch.tensor([len(sentence) for sentence in sentences])
        return cls(gold.to(device), forms.to(device), sizes.to(device), maps)

    @cached_property
    def given(self) -> Float[torch.Tensor, "text position position head"]:
        """The attention from i to j, padded. It is large: work on the maps of single sentences where possible."""
        assert self.maps is not None
        return padded(self.maps, self.gold.shape[1] + SPECIALS)

    @cached_property
    def back(self) -> Float[torch.Tensor, "text position position head"]:
        """The attention from j to i."""
        return self.given.transpose(1, 2).contiguous()

    @property
    def words(self) -> Bool[torch.Tensor, "text word"]:
        """Which places are words."""
        return torch.arange(self.gold.shape[1], device=self.sizes.device) < self.sizes[:, None]

    @property
    def candidates(self) -> Bool[torch.Tensor, "text 1+word"]:
        """Which candidates exist."""
        return torch.nn.functional.pad(self.words, (1, 0), value=True)


def padded(maps: Sequence[Float[torch.Tensor, "position position k"]], width: int) -> Float[torch.Tensor, "text width width k"]:
    """Maps of several sentences as one tensor, with zeros where a sentence ends."""
    tensor = maps[0].new_empty(len(maps), width, width, maps[0].shape[2])
    for row, sentence in enumerate(maps):
        size = len(sentence)
        tensor[row, :size, :size] = sentence
        if size < width:
            tensor[row, size:] = 0
            tensor[row, :size, size:] = 0
    return tensor


def pieces(sizes: Sequence[int], cells: int, each: int) -> Iterator[list[int]]:
    """The places of sentences of these sizes, in groups of similar length. The padded pairs of words of a group have at
    most `cells` numbers, `each` per pair, unless the group is one sentence.
    """
    ordered = sorted(range(len(sizes)), key=lambda place: sizes[place])
    return grouped(ordered, lambda piece, place: (len(piece) + 1) * each * (sizes[place] + SPECIALS) ** 2 > cells)
