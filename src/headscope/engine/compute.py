"""The work itself: texts in, states out. The same code for every engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.core.batch import Later, MapBatch, Side
from headscope.core.heads import Kind
from headscope.core.slope import Slope
from headscope.core.state import States
from headscope.encoding.batches import batches, token_side
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded
from headscope.encoding.words import WordGroups, word_map
from headscope.engine.failures import DeviceError, TextError
from headscope.engine.map_memory import MOST, SIDES, map_bytes, map_size
from headscope.engine.plan import Plan
from headscope.errors import HeadscopeError, RunError
from headscope.measures.base import Level
from headscope.models.capture import NotFiniteError
from headscope.models.model import Model
from headscope.stats.bootstrap import poisson_weights

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64

    from headscope.models.capture import Consumer

_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")  # as CUDA and torch on a CPU say it
LOOK = 512  # tokens of the texts whose maps are all held at once


class BatchView:
    """One batch of texts as the measures see it: for each kind of attention, what rows and columns are, by token or
    by word.
    """

    def __init__(self, texts: Sequence[Encoded], rows: Rows, replicates: Float64[np.ndarray, "batch replicate"]) -> None:
        targets = [text.target for text in texts if text.target is not None]
        self._documents = tuple(text.document for text in texts)
        self._texts = {"source": texts, "target": targets or texts}
        self._rows = rows
        self._replicates = replicates
        self._shared: dict[Level, dict[Hashable, Any]] = {"token": {}, "word": {}}
        self._tokens: dict[str, Side] = {}
        self._words: dict[str, WordGroups] = {}

    def _token_side(self, name: str) -> Side:
        if name not in self._tokens:
            self._tokens[name] = token_side(self._texts[name])
        return self._tokens[name]

    def _word_groups(self, name: str, device: torch.device) -> WordGroups:
        if name not in self._words:
            self._words[name] = WordGroups.build(self._texts[name], device)
        return self._words[name]

    def made_ready(self, plan: Plan, words: bool, device: torch.device) -> BatchView:
        """The view itself, with all that it would otherwise make when it is first asked for it."""
        for name in {name for site in plan.layout.sites for name in SIDES[site.kind]}:
            self._token_side(name)
            if words:
                self._word_groups(name, device)
        return self

    def tokens(
        self,
        plan: Plan,
        index: int,
        weights: Float[torch.Tensor, "b h q k"],
        visible: Bool[torch.Tensor, "b q k"] | None,
        again: Callable[[], Later] | None = None,
    ) -> MapBatch:
        """The maps of one site between tokens. Padded rows, where a model may leave anything, are emptied."""
        queries, keys = (self._token_side(name) for name in SIDES[plan.layout.sites[index].kind])
        if (queries.positions < 0).any():
            weights = weights.masked_fill(~queries.valid(weights.device)[:, None, :, None], 0)
        shared = self._shared["token"]
        return MapBatch(index, plan.layout, weights.float(), queries, keys, self._replicates, visible, shared, self._documents, again)

    def words(self, maps: MapBatch) -> MapBatch:
        """The same between words; a word is visible to another if any of its tokens is to any of the other's."""
        device = maps.weights.device
        queries, keys = (self._word_groups(name, device) for name in SIDES[maps.site.kind])
        visible = maps.once("visible words", lambda: _visible_words(maps.visible, queries, keys))
        weights = word_map(maps.weights, queries, keys, self._rows)

        def again() -> Later:
            rows = maps.later()

            def later(start: int, stop: int) -> Float[torch.Tensor, "b h w k"]:
                part, first, end = queries.part(start, stop)
                return word_map(rows(first, end).float(), part, keys, self._rows)

            return later

        shared = self._shared["word"]
        return MapBatch(maps.index, maps.layout, weights, queries.side, keys.side, maps.replicates, visible, shared, maps.documents, again)


def _visible_words(
    visible: Bool[torch.Tensor, "b q k"] | None, queries: WordGroups, keys: WordGroups
) -> Bool[torch.Tensor, "b qw kw"] | None:
    if visible is None:
        return None
    return (queries.share @ visible.float() @ keys.member) > 0


class Accumulator:
    """The states of a plan's measures, fed one site of one batch at a time; only those of some names if that is
    said.
    """

    def __init__(self, plan: Plan, replicates: int, seed: int = 0, names: frozenset[str] | None = None) -> None:
        self._plan = plan
        self._by_level = plan.by_level(names)
        self.by_slope = plan.by_slope(names)
        self.states: States = {measure.name: measure.start(plan.layout, replicates, seed) for measure in plan.measures}

    def add(
        self,
        view: BatchView,
        index: int,
        weights: Float[torch.Tensor, "b h q k"],
        visible: Bool[torch.Tensor, "b q k"] | None = None,
        again: Callable[[], Later] | None = None,
    ) -> None:
        """Let every measure see one site's maps; `index` counts the plan's sites."""
        tokens = view.tokens(self._plan, index, weights, visible, again)
        levels: dict[Level, MapBatch] = {"token": tokens}
        if "word" in self._by_level:
            levels["word"] = view.words(tokens)
        for level, measures in self._by_level.items():
            for measure in measures:
                measure.update(self.states[measure.name], levels[level])

    def add_slopes(
        self, view: BatchView, index: int, slope: Slope, sizes: Float[torch.Tensor, "b h q k"], visible: Bool[torch.Tensor, "b q k"] | None
    ) -> None:
        """Let the measures of gradients see what is made of those of one site."""
        tokens = view.tokens(self._plan, index, sizes, visible)
        for measure in self.by_slope[slope]:
            measure.update(self.states[measure.name], tokens)


class ShardRunner:
    """Runs a model over shards of texts."""

    def __init__(
        self, model: Model, plan: Plan, *, word_rows: Rows = "mean", replicates: int = 500, seed: int = 0, batch_tokens: int = 2048
    ) -> None:
        self.model = model
        self.plan = plan
        self._word_rows: Rows = word_rows
        self._replicates = replicates
        self._seed = seed
        self.batch_tokens = batch_tokens

    def __call__(self, texts: Sequence[Encoded], names: frozenset[str] | None = None) -> States:
        """The states of one shard, which the measures of these names see (all, if none are named); the others start
        theirs.
        """
        accumulator = Accumulator(self.plan, self._replicates, self._seed, names)
        for batch, view in self._views(texts, "word" in self.plan.by_level(names)):
            try:
                if self.plan.by_level(names):
                    self._stream(batch, lambda index, *seen, view=view: accumulator.add(view, index, *seen))
                for slope in accumulator.by_slope:
                    self._differentiate(batch, slope, accumulator)
            except NotFiniteError as error:
                raise explain(self.model, batch, error) from error
            except HeadscopeError:
                raise
            except Exception as error:
                raise explain(self.model, batch, error) from error
        return accumulator.states

    def _views(self, texts: Sequence[Encoded], words: bool) -> Iterator[tuple[Sequence[Encoded], BatchView]]:
        """Batches and what measures see of them; while another device works on one, the next is made ready here.

        The largest batch comes first: later ones then fit into memory that is already there.
        """
        planned = list(batches(texts, self.batch_tokens))[::-1]
        if self.model.device.type == "cpu":
            yield from ((batch, self._view(batch, words)) for batch in planned)
            return
        with ThreadPoolExecutor(1) as pool:
            ready = deque(pool.submit(self._view, batch, words) for batch in planned[:2])
            for number, batch in enumerate(planned):
                if number + 2 < len(planned):
                    ready.append(pool.submit(self._view, planned[number + 2], words))
                yield batch, ready.popleft().result()

    def _differentiate(self, batch: Sequence[Encoded], slope: Slope, accumulator: Accumulator) -> None:
        """The backward passes that gradients need: one for each way of masking, which all together weigh as much as
        one text.
        """
        texts = [text for text in batch if self.model.predicts(text)]
        draws = slope.draws if self.model.objective == "masked" else 1
        place = {site: index for index, site in enumerate(self.plan.chosen)}
        replicates = poisson_weights([text.document for text in texts], self._replicates, self._seed) / draws
        for draw in range(draws if texts else 0):
            view = BatchView(texts, self._word_rows, replicates)
            self.model.differentiate(
                texts,
                slope,
                f"{self._seed}/{draw}",
                partial(_taken, accumulator, view, place, slope),
                frozenset(self.plan.chosen),
            )

    def _view(self, batch: Sequence[Encoded], words: bool) -> BatchView:
        replicates = poisson_weights([text.document for text in batch], self._replicates, self._seed)
        return BatchView(batch, self._word_rows, replicates).made_ready(self.plan, words, self.model.device)

    def look(self, texts: Sequence[Encoded]) -> Iterator[tuple[Encoded, dict[Kind, Float[torch.Tensor, "head query key"]]]]:
        """Each text, the shortest first, with the maps of all of the plan's heads, those of a kind side by side.

        Few go through the model at a time: what is held for them is bounded, unless a single text takes more.
        """
        heads = self.plan.layout.heads()
        for batch in batches(texts, LOOK):
            few = max(1, MOST * len(batch) // map_bytes(batch, heads))
            for start in range(0, len(batch), few):
                yield from self._looked(batch[start : start + few])

    def _looked(self, batch: Sequence[Encoded]) -> Iterator[tuple[Encoded, dict[Kind, Float[torch.Tensor, "head query key"]]]]:
        found = self._held(batch)
        for number, text in enumerate(batch):
            sizes = {kind: map_size([text], kind) for kind in found}
            yield text, {kind: found[kind][number, :, :rows, :columns] for kind, (rows, columns) in sizes.items()}

    def _held(self, batch: Sequence[Encoded]) -> dict[Kind, Float[torch.Tensor, "b head q k"]]:
        """The maps of a batch, by kind. Each layer is put where it belongs as it comes, so that nothing is there
        twice.
        """
        layout = self.plan.layout
        kinds = layout.by_kind()
        found: dict[Kind, torch.Tensor] = {}

        def keep(index: int, weights: torch.Tensor, *_: object) -> None:
            kind = layout.sites[index].kind
            rows, columns = map_size(batch, kind)
            if kind not in found:
                found[kind] = torch.empty((len(batch), len(kinds[kind]), rows, columns), dtype=torch.float32, device=weights.device)
            first = kinds[kind].index(layout.slice(index).start)
            found[kind][:, first : first + weights.shape[1]] = weights[:, :, :rows, :columns]

        self._stream(batch, keep)
        return found

    def _stream(self, batch: Sequence[Encoded], consume: Consumer) -> None:
        place = {site: index for index, site in enumerate(self.plan.chosen)}
        self.model.stream(
            self.model.inputs(batch),
            lambda site, *seen: consume(place[site], *seen),
            frozenset(self.plan.chosen),
        )


def explain(model: Model, batch: Sequence[Encoded], error: Exception) -> RunError:
    """What a person can do about an error that a model met on a batch; a TextError if other texts may do."""
    shape = f"a batch of {len(batch)} texts of up to {max(text.cost for text in batch)} tokens (first: {batch[0].id})"
    said = (str(error).strip() or "no message").splitlines()[0][:300]
    said = said if isinstance(error, HeadscopeError) else f"{type(error).__name__}: {said}"
    if isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _NO_MEMORY):
        return RunError(f"not enough memory for {shape}", "Use a smaller --batch-tokens, or fewer --layers")
    if "CUDA error" in str(error):
        return DeviceError(
            f"the device gave up on {shape}: {said}", "Look at those texts, or use --device cpu, which says more; --resume goes on"
        )
    return TextError(f"{model.name} failed on {shape}: {said}", said)


def _taken(
    accumulator: Accumulator,
    view: BatchView,
    place: Mapping[int, int],
    slope: Slope,
    site: int,
    sizes: Float[torch.Tensor, "b h q k"],
    visible: Bool[torch.Tensor, "b q k"] | None,
) -> None:
    accumulator.add_slopes(view, place[site], slope, sizes, visible)
