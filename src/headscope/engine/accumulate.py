"""The inputs of measures for a batch of texts, and the states that accumulate them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import torch

from headscope.core.batch import Later, MapBatch, Side, Slope, Weigh
from headscope.core.heads import Kind, Site
from headscope.core.profile import timing
from headscope.core.rows import AttentionScores, RowNeeds, RowRequest, RowSums
from headscope.core.slices import numbers_of
from headscope.core.state import States
from headscope.encoding.batches import TokenForms
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded
from headscope.encoding.words import WordGroups, token_maps, word_map
from headscope.engine.map_memory import SIDES
from headscope.engine.plan import Plan
from headscope.measures.base import Level, Measure
from headscope.measures.means import row_sums
from headscope.measures.weights.words import WordIndex, sentence_spans
from headscope.stats.rows import even_statistics

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class BatchView:
    """One batch of texts in the form that measures see: for each kind of attention, its rows and columns, by token or
    by word. `weigh` draws the bootstrap weights of documents, and `forms` are those of the tokens of earlier batches.
    """

    def __init__(
        self,
        texts: Sequence[Encoded],
        rows: Rows,
        weigh: Weigh,
        forms: TokenForms | None = None,
    ) -> None:
        targets = [text.target for text in texts if text.target is not None]
        self._documents = tuple(text.document for text in texts)
        self._slices = numbers_of(text.slice for text in texts)
        self._texts = {"source": texts, "target": targets or texts}
        self._rows = rows
        self._weigh = weigh
        self._shared: dict[Level, dict[Hashable, Any]] = {"token": {}, "word": {}}
        self._tokens: dict[str, Side] = {}
        self._words: dict[str, WordGroups] = {}
        self._sentence_spans: dict[str, torch.Tensor] = {}
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
        """The view itself, after computing everything that it and the measures would otherwise compute on first use."""
        for kind in plan.layout.by_kind():
            if needs is not None:
                queries, keys = (self._token_side(name) for name in SIDES[kind])
                _ = keys.members(needs, device), queries.row_groups(needs, device)
            for level, own in measures.items() if kind != "cross" else ():  # no measure prepares anything for cross attention
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
        """The maps of one site between tokens. Padded rows, which may contain any values, are set to 0."""
        queries, keys = (self._token_side(name) for name in SIDES[plan.layout.sites[index].kind])
        if queries.padded:
            weights = weights.masked_fill(~queries.valid(weights.device)[:, None, :, None], 0)
        shared = self._shared["token"]
        batch = MapBatch(index, plan.layout, weights.float(), queries, keys, self._weigh, visible, shared, self._documents, again)
        return replace(batch, slices=self._slices)

    def request(self, site: Site, needs: RowNeeds, device: torch.device) -> RowRequest:
        """What to compute of the rows of a site."""
        _, keys = (self._token_side(name) for name in SIDES[site.kind])
        return RowRequest(keys.members(needs, device), needs.offsets, self._sentences(site.kind, device) if needs.sentences else None)

    def _sentences(self, kind: Kind, device: torch.device) -> Int[torch.Tensor, "side b q"] | None:
        """For each row the tokens of its sentence: the first, and the first one after them; twice 0 if it is part of no
        word. None if no kernel for this device reads them.
        """
        if kind == "cross" or device.type != "cpu":
            return None
        name = SIDES[kind][0]
        if name not in self._sentence_spans:
            groups = self._word_groups(name, device)
            self._sentence_spans[name] = torch.from_numpy(sentence_spans(WordIndex.of(groups.side), groups.places, groups.of.shape[1]))
        return self._sentence_spans[name]

    def row_groups(self, site: Site, needs: RowNeeds, device: torch.device) -> Float[torch.Tensor, "b rows q"]:
        """The rows of a site that belong to each group."""
        return self._token_side(SIDES[site.kind][0]).row_groups(needs, device)

    def rows(self, plan: Plan, index: int, rows: RowSums, scores: AttentionScores) -> MapBatch:
        """The statistics of the rows of one site, without its maps."""
        site = plan.layout.sites[index]
        queries, keys = (self._token_side(name) for name in SIDES[site.kind])
        reach, lengths = scores.reach, scores.lengths  # what `even` holds is kept for other layers, and must be small

        def even() -> RowSums:
            members = keys.members(rows.needs, rows.values.device)
            values = even_statistics(reach, lengths, queries.width, members, rows.needs.offsets)
            return RowSums.of(rows.needs, values, queries.row_groups(rows.needs, rows.values.device))

        return MapBatch(
            index,
            plan.layout,
            None,
            queries,
            keys,
            self._weigh,
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
        """The words of one site, and the scores from which weights between them can be computed without its maps."""
        queries, keys = (self._word_groups(name, scores.query.device) for name in SIDES[plan.layout.sites[index].kind])
        return MapBatch(
            index,
            plan.layout,
            None,
            queries.side,
            keys.side,
            self._weigh,
            shared=self._shared["word"],
            documents=self._documents,
            tokens=token_maps(None, queries, keys, self._rows, scores),
            reach=scores.reach,
            slices=self._slices,
        )

    def words(self, maps: MapBatch) -> MapBatch:
        """The maps of one site between words; a word is visible to another if any of its tokens is visible to any token
        of the other.
        """
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
            maps.weigh,
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
    """The states of a plan's measures, updated with one site of one batch at a time; only the measures in `names`, if
    given. If `sliced`, each has a part for each slice of the corpus.
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
        """Update every measure with one site's maps; `index` counts the plan's sites."""
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
        """Update every measure with the statistics of one site's rows, or the scores of its words."""
        for level, measures in self._by_level.items():
            batch = view.rows(self._plan, index, rows, scores) if level == "token" else view.word_scores(self._plan, index, scores)
            for measure in measures:
                with timing(f"measure {measure.name}"):
                    measure.update(self.states[measure.name], batch)

    def add_slopes(
        self, view: BatchView, index: int, slope: Slope, sizes: Float[torch.Tensor, "b h q k"], visible: Bool[torch.Tensor, "b q k"] | None
    ) -> None:
        """Update the measures of gradients with the values computed from one site's gradients."""
        tokens = view.tokens(self._plan, index, sizes, visible)
        for measure in self.by_slope[slope]:
            with timing(f"measure {measure.name}"):
                measure.update(self.states[measure.name], tokens)
