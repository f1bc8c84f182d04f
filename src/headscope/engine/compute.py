"""The work itself: texts in, states out. The same code for every engine."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.core.allocation import keep_freed_memory
from headscope.core.batch import Later, MapBatch, Side, Slope
from headscope.core.heads import Kind, Site
from headscope.core.profile import timed, timing
from headscope.core.rows import ENTROPY, AttentionScores, RowNeeds, RowSums
from headscope.core.slices import numbers_of
from headscope.core.state import States
from headscope.encoding.batches import TokenForms, batches
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded
from headscope.encoding.words import WordGroups, token_maps, word_map
from headscope.engine.failures import DeviceError, TextError
from headscope.engine.map_memory import MOST, SIDES, map_bytes, map_size
from headscope.engine.plan import Plan
from headscope.errors import HeadscopeError, RunError
from headscope.measures.base import Level, Measure
from headscope.measures.means import row_sums
from headscope.models.capture import Finite, NotFiniteError
from headscope.models.fused import OtherMask, Reaches
from headscope.models.maps.base import AttentionMaps
from headscope.models.model import Model
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.rows import even_statistics

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64

    from headscope.models.capture import Consumer, ValueConsumer

_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")  # as CUDA and torch on a CPU say it
LOOK = 512  # tokens of the texts whose maps are all held at once


class BatchView:
    """One batch of texts as the measures see it: for each kind of attention, what rows and columns are, by token or
    by word. `forms` are those of the tokens of earlier batches.
    """

    def __init__(
        self,
        texts: Sequence[Encoded],
        rows: Rows,
        replicates: Float64[np.ndarray, "batch replicate"],
        forms: TokenForms | None = None,
    ) -> None:
        targets = [text.target for text in texts if text.target is not None]
        self._documents = tuple(text.document for text in texts)
        self._slices = numbers_of(text.slice for text in texts)
        self._texts = {"source": texts, "target": targets or texts}
        self._rows = rows
        self._replicates = replicates
        self._shared: dict[Level, dict[Hashable, Any]] = {"token": {}, "word": {}}
        self._tokens: dict[str, Side] = {}
        self._words: dict[str, WordGroups] = {}
        self._forms = forms or TokenForms()

    def _token_side(self, name: str) -> Side:
        if name not in self._tokens:
            self._tokens[name] = self._forms.side(self._texts[name])
        return self._tokens[name]

    def _word_groups(self, name: str, device: torch.device) -> WordGroups:
        if name not in self._words:
            self._words[name] = WordGroups.build(self._texts[name], device)
        return self._words[name]

    def made_ready(
        self, plan: Plan, measures: Mapping[Level, Sequence[Measure]], device: torch.device, needs: RowNeeds | None = None
    ) -> BatchView:
        """The view itself, with all that it and the measures would otherwise make when they are first asked for it."""
        for kind in plan.layout.by_kind():
            if needs is not None:
                queries, keys = (self._token_side(name) for name in SIDES[kind])
                _ = keys.members(needs, device), queries.row_groups(needs, device)
            for level, own in measures.items() if kind != "cross" else ():  # between two texts nobody prepares anything
                queries, keys = (self._side(name, level, device) for name in SIDES[kind])
                for measure in own:
                    self._shared[level]["prepared", measure, kind] = measure.prepare(queries, keys, device)
        return self

    def _side(self, name: str, level: Level, device: torch.device) -> Side:
        return self._token_side(name) if level == "token" else self._word_groups(name, device).side

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
        if queries.padded:
            weights = weights.masked_fill(~queries.valid(weights.device)[:, None, :, None], 0)
        shared = self._shared["token"]
        batch = MapBatch(index, plan.layout, weights.float(), queries, keys, self._replicates, visible, shared, self._documents, again)
        return replace(batch, slices=self._slices)

    def members(self, site: Site, needs: RowNeeds, device: torch.device) -> Float[torch.Tensor, "b k group"]:
        """Which keys of a site belong to which group."""
        return self._token_side(SIDES[site.kind][1]).members(needs, device)

    def row_groups(self, site: Site, needs: RowNeeds, device: torch.device) -> Float[torch.Tensor, "b rows q"]:
        """Which rows of a site belong to which group."""
        return self._token_side(SIDES[site.kind][0]).row_groups(needs, device)

    def rows(self, plan: Plan, index: int, rows: RowSums, scores: AttentionScores) -> MapBatch:
        """The statistics of the rows of one site, without its maps."""
        site = plan.layout.sites[index]
        queries, keys = (self._token_side(name) for name in SIDES[site.kind])
        reach, lengths = scores.reach, scores.lengths  # what `even` holds waits for other layers, and must be small

        def even() -> RowSums:
            members = self.members(site, rows.needs, rows.values.device)
            values = even_statistics(reach, lengths, queries.width, members, rows.needs.offsets)
            return RowSums.of(rows.needs, values, queries.row_groups(rows.needs, rows.values.device))

        return MapBatch(
            index,
            plan.layout,
            None,
            queries,
            keys,
            self._replicates,
            shared=self._shared["token"],
            documents=self._documents,
            rows=rows,
            reach=reach,
            scores=scores if rows.needs.scores else None,
            even_rows=even,
            value=scores.value if rows.needs.scores else None,
            slices=self._slices,
        )

    def word_scores(self, plan: Plan, index: int, scores: AttentionScores) -> MapBatch:
        """The words of one site, and the scores that weights between them can be worked out from, without its maps."""
        queries, keys = (self._word_groups(name, scores.query.device) for name in SIDES[plan.layout.sites[index].kind])
        return MapBatch(
            index,
            plan.layout,
            None,
            queries.side,
            keys.side,
            self._replicates,
            shared=self._shared["word"],
            documents=self._documents,
            tokens=token_maps(None, queries, keys, self._rows, scores),
            reach=scores.reach,
            slices=self._slices,
        )

    def words(self, maps: MapBatch) -> MapBatch:
        """The same between words; a word is visible to another if any of its tokens is to any of the other's."""
        device = maps.weights.device
        queries, keys = (self._word_groups(name, device) for name in SIDES[maps.site.kind])
        visible = maps.once("visible words", lambda: _visible_words(maps.visible, queries, keys))

        def again() -> Later:
            rows = maps.later()

            def later(start: int, stop: int) -> Float[torch.Tensor, "b h w k"]:
                part, first, end = queries.part(start, stop)
                return word_map(rows(first, end).float(), part, keys, self._rows)

            return later

        return MapBatch(
            maps.index,
            maps.layout,
            lambda: word_map(maps.weights, queries, keys, self._rows),
            queries.side,
            keys.side,
            maps.replicates,
            visible,
            self._shared["word"],
            maps.documents,
            again,
            token_maps(maps.weights, queries, keys, self._rows),
            slices=self._slices,
        )


def _visible_words(
    visible: Bool[torch.Tensor, "b q k"] | None, queries: WordGroups, keys: WordGroups
) -> Bool[torch.Tensor, "b qw kw"] | None:
    if visible is None:
        return None
    return (queries.share @ visible.float() @ keys.member) > 0


class Accumulator:
    """The states of a plan's measures, fed one site of one batch at a time; only those of some names if that is
    said. If `sliced`, each has a part for each slice of the corpus.
    """

    def __init__(self, plan: Plan, replicates: int, seed: int = 0, names: frozenset[str] | None = None, sliced: bool = False) -> None:
        self._plan = plan
        self._by_level = plan.by_level(names)
        self._needs = [needs for measure in self._by_level.get("token", ()) if (needs := measure.row_needs()) is not None]
        self.by_slope = plan.by_slope(names)
        starts = {measure.name: partial(measure.start, plan.layout, replicates, seed) for measure in plan.measures}
        self.states: States = {name: start().divide(start) if sliced else start() for name, start in starts.items()}

    def add(
        self,
        view: BatchView,
        index: int,
        weights: Float[torch.Tensor, "b h q k"],
        visible: Bool[torch.Tensor, "b q k"] | None = None,
        again: Callable[[], Later] | None = None,
        value: Float[torch.Tensor, "b kv k d"] | None = None,
    ) -> None:
        """Let every measure see one site's maps; `index` counts the plan's sites."""
        with timing("rows and columns of maps"):
            tokens = replace(view.tokens(self._plan, index, weights, visible, again), value=value)
            if self._needs:  # those measures share them
                tokens = replace(tokens, rows=row_sums(tokens, reduce(or_, self._needs)))
        levels: dict[Level, MapBatch] = {"token": tokens}
        if "word" in self._by_level:
            with timing("maps between words"):
                levels["word"] = view.words(tokens)
        for level, measures in self._by_level.items():
            for measure in measures:
                with timing(f"measure {measure.name}"):
                    measure.update(self.states[measure.name], levels[level])

    def add_rows(self, view: BatchView, index: int, rows: RowSums, scores: AttentionScores) -> None:
        """Let every measure see the statistics of one site's rows, or the scores of its words."""
        for level, measures in self._by_level.items():
            batch = view.rows(self._plan, index, rows, scores) if level == "token" else view.word_scores(self._plan, index, scores)
            for measure in measures:
                with timing(f"measure {measure.name}"):
                    measure.update(self.states[measure.name], batch)

    def add_slopes(
        self, view: BatchView, index: int, slope: Slope, sizes: Float[torch.Tensor, "b h q k"], visible: Bool[torch.Tensor, "b q k"] | None
    ) -> None:
        """Let the measures of gradients see what is made of those of one site."""
        tokens = view.tokens(self._plan, index, sizes, visible)
        for measure in self.by_slope[slope]:
            with timing(f"measure {measure.name}"):
                measure.update(self.states[measure.name], tokens)


class ShardRunner:
    """Runs a model over shards of texts. `maps` are what measures are given, by default its attention weights; the
    plan's sites are theirs.
    """

    def __init__(
        self,
        model: Model,
        plan: Plan,
        *,
        word_rows: Rows = "mean",
        replicates: int = 500,
        seed: int = 0,
        batch_tokens: int = 2048,
        sliced: bool = False,
        maps: AttentionMaps | None = None,
    ) -> None:
        self.model = model
        self.maps = maps or AttentionMaps(model)
        self.plan = plan
        self._word_rows: Rows = word_rows
        self._replicates = replicates
        self._seed = seed
        self.batch_tokens = batch_tokens
        self._sliced = sliced
        self._reaches = Reaches()
        self._forms = TokenForms()
        keep_freed_memory()

    def __call__(self, texts: Sequence[Encoded], names: frozenset[str] | None = None) -> States:
        """The states of one shard, which the measures of these names see (all, if none are named); the others start
        theirs.
        """
        try:
            return self._states(texts, names, self._needs(names))
        except OtherMask:
            return self._states(texts, names, None)

    def measured(self, texts: Sequence[Encoded]) -> Sequence[Encoded]:
        """The texts as measures see them."""
        return texts

    def _needs(self, names: frozenset[str] | None = None) -> RowNeeds | None:
        """What the measures need of rows, if that is all they need and it can be had without maps, and sooner."""
        needs = self.plan.row_needs(names)
        if needs is None or self.maps.needs_maps is not None or (needs.sentences and self._word_rows == "max"):
            return None
        if needs.all_weights and self.model.device.type == "cpu":
            return None
        return needs

    def _states(self, texts: Sequence[Encoded], names: frozenset[str] | None, needs: RowNeeds | None) -> States:
        """The states of one shard, from what measures need of rows, or from maps if that is None."""
        accumulator = Accumulator(self.plan, self._replicates, self._seed, names, self._sliced)
        levels = self.plan.by_level(names)
        passes: list[tuple[Sequence[Encoded], Finite]] = []
        with self.model.attending("eager" if needs is None else "sdpa") if levels else nullcontext():
            for batch, view in timed(self._views(texts, levels, needs), "batches"):
                with self._explained(batch):
                    with timing("the model's pass"):
                        if levels and needs is not None:
                            passes.append((batch, self._stream_rows(batch, view, needs, accumulator)))
                        elif levels:
                            self._stream_maps(batch, view, accumulator)
                    for slope in accumulator.by_slope:
                        with timing("the model's backward pass"):
                            self._differentiate(batch, slope, accumulator)
        self._reaches.check()  # now, not for each batch, since the device would be waited for
        for batch, finite in passes:
            with self._explained(batch):
                finite.check()
        return accumulator.states

    @contextmanager
    def _explained(self, batch: Sequence[Encoded]) -> Iterator[None]:
        """Errors that the model meets on a batch say what a person can do about them."""
        try:
            yield
        except OtherMask:
            raise
        except NotFiniteError as error:
            raise explain(self.model, batch, error) from error
        except HeadscopeError:
            raise
        except Exception as error:
            raise explain(self.model, batch, error) from error

    def _views(
        self, texts: Sequence[Encoded], measures: Mapping[Level, Sequence[Measure]], needs: RowNeeds | None
    ) -> Iterator[tuple[Sequence[Encoded], BatchView]]:
        """Batches and what measures see of them; while another device works on one, the next is made ready here.

        The largest batch comes first: later ones then fit into memory that is already there.
        """
        planned = list(batches(texts, self.batch_tokens))[::-1]
        if self.model.device.type == "cpu":
            yield from ((batch, self._view(batch, measures, needs)) for batch in planned)
            return
        with _short_turns(), ThreadPoolExecutor(1) as pool:
            ready = deque(pool.submit(self._view, batch, measures, needs) for batch in planned[:2])
            for number, batch in enumerate(planned):
                if number + 2 < len(planned):
                    ready.append(pool.submit(self._view, planned[number + 2], measures, needs))
                yield batch, ready.popleft().result()

    @property
    def makes_no_maps(self) -> bool:
        """Whether a run of all measures needs statistics of rows alone, which the model gives without maps."""
        return self._needs() is not None

    def _stream_maps(self, batch: Sequence[Encoded], view: BatchView, accumulator: Accumulator) -> None:
        """Measure the maps of a batch."""
        values: dict[int, torch.Tensor] = {}

        def take(index: int, weights: torch.Tensor, visible: torch.Tensor | None, again: Callable[[], Later] | None) -> None:
            accumulator.add(view, index, weights, visible, again, values.pop(index, None))

        self._stream(batch, take, values.__setitem__)

    def _stream_rows(self, batch: Sequence[Encoded], view: BatchView, needs: RowNeeds, accumulator: Accumulator) -> Finite:
        """Measure a batch without making its maps; what is returned says later whether all was finite."""
        place = {site: index for index, site in enumerate(self.plan.chosen)}
        finite = self.model.finite()

        def members(site: int) -> Float[torch.Tensor, "b k group"]:
            return view.members(self.maps.sites[site], needs, self.model.device)

        def take(site: int, values: Float[torch.Tensor, "b h q statistic"], scores: AttentionScores) -> None:
            rows = RowSums.of(needs, values, view.row_groups(self.maps.sites[site], needs, self.model.device))
            finite.note_sums(site, rows.over("all")[..., ENTROPY])
            accumulator.add_rows(view, place[site], rows, scores)

        self.maps.stream_rows(batch, members, needs.offsets, take, frozenset(self.plan.chosen), self._reaches)
        return finite

    def _differentiate(self, batch: Sequence[Encoded], slope: Slope, accumulator: Accumulator) -> None:
        """The backward passes that gradients need: one for each way of masking, which all together weigh as much as
        one text. A batch whose backward pass would hold too much is cut into parts.
        """
        masked = self.model.objective == "masked"
        draws = slope.draws if masked else 1
        place = {site: index for index, site in enumerate(self.plan.chosen)}
        texts = [text for text in batch if self.model.predicts(text)]
        for part in self.model.backward_memory.batches(texts, slope.share if masked else 1.0) if texts else ():
            replicates = poisson_weights([text.document for text in part], self._replicates, self._seed) / draws
            for draw in range(draws):
                view = BatchView(part, self._word_rows, replicates, self._forms)
                self.model.differentiate(
                    part,
                    slope,
                    f"{self._seed}/{draw}",
                    partial(_taken, accumulator, view, place, slope),
                    frozenset(self.plan.chosen),
                )

    def _view(self, batch: Sequence[Encoded], measures: Mapping[Level, Sequence[Measure]], needs: RowNeeds | None) -> BatchView:
        with timing("bootstrap: weights of documents"):
            weighed = any(measure.weighs_texts for own in measures.values() for measure in own)
            replicates = poisson_weights([text.document for text in batch], self._replicates if weighed else 0, self._seed)
        view = BatchView(batch, self._word_rows, replicates, self._forms)
        return view.made_ready(self.plan, measures, self.model.device, needs)

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

    def _stream(self, batch: Sequence[Encoded], consume: Consumer, values: ValueConsumer | None = None) -> None:
        place = {site: index for index, site in enumerate(self.plan.chosen)}
        self.maps.stream(
            batch,
            lambda site, *seen: consume(place[site], *seen),
            frozenset(self.plan.chosen),
            None if values is None else lambda site, value: values(place[site], value),
        )


@contextmanager
def _short_turns() -> Iterator[None]:
    """Threads of this process that take turns every 0.1 ms, not every 5: the one that keeps a GPU busy gives its turn
    away with every kernel it launches, and would wait for the one that prepares batches.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


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
