"""Compute the states of measures from texts. All engines share this code."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.allocation import keep_freed_memory
from headscope.core.batch import Later, Slope
from headscope.core.heads import Kind
from headscope.core.profile import timed, timing
from headscope.core.rows import ENTROPY, AttentionScores, RowNeeds, RowRequest, RowSums
from headscope.core.state import States
from headscope.encoding.batches import TokenForms, batches
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded
from headscope.engine.accumulate import Accumulator, BatchView
from headscope.engine.failures import DeviceError, TextError
from headscope.engine.map_memory import MOST, map_bytes, map_size
from headscope.engine.overlap import ahead
from headscope.engine.plan import Plan
from headscope.errors import HeadscopeError, RunError
from headscope.measures.base import Level, Measure
from headscope.models.capture import Finite, NotFiniteError
from headscope.models.fused import OtherMask, Reaches
from headscope.models.maps.base import AttentionMaps
from headscope.models.model import Model
from headscope.stats.bootstrap import poisson_weights

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64

    from headscope.models.capture import Consumer, ValueConsumer

_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")  # messages of CUDA, and of torch on a CPU
LOOK = 512  # tokens of the texts whose maps are held together


class ShardRunner:
    """Runs a model over shards of texts. `maps` are the maps that measures receive, by default the attention weights;
    the plan's sites refer to them.
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
        """The states of one shard. Only the named measures see it (all, if None); the states of others stay neutral."""
        try:
            return self._states(texts, names, self._needs(names))
        except OtherMask:
            return self._states(texts, names, None)

    def measured(self, texts: Sequence[Encoded]) -> Sequence[Encoded]:
        """The texts in the form that measures see."""
        return texts

    def _needs(self, names: frozenset[str] | None = None) -> RowNeeds | None:
        """The statistics of rows that measures need, if they need nothing else and these can be computed faster without
        maps; else None.
        """
        needs = self.plan.row_needs(names)
        if needs is None or self.maps.needs_maps is not None or (needs.sentences and self._word_rows == "max"):
            return None
        if needs.all_weights and self.model.device.type == "cpu":
            return None
        return needs

    def _states(self, texts: Sequence[Encoded], names: frozenset[str] | None, needs: RowNeeds | None) -> States:
        """The states of one shard: from the statistics of rows that measures need, or from maps if `needs` is None."""
        accumulator = Accumulator(self.plan, self._replicates, self._seed, names, self._sliced)
        levels = self.plan.by_level(names)
        passes: list[tuple[Sequence[Encoded], Finite]] = []
        attending = self.model.attending("eager" if needs is None else "sdpa") if levels else nullcontext()
        with attending, closing(self._views(texts, levels, needs)) as views:  # ends the thread that makes them if the pass fails
            for batch, view in timed(views, "batches"):
                with self._explained(batch):
                    with timing("the model's pass"):
                        if levels and needs is not None:
                            passes.append((batch, self._stream_rows(batch, view, needs, accumulator)))
                        elif levels:
                            self._stream_maps(batch, view, accumulator)
                    for slope in accumulator.by_slope:
                        with timing("the model's backward pass"):
                            self._differentiate(batch, slope, accumulator)
        self._reaches.check()  # once here, since for each batch it would make the host wait for the device
        for batch, finite in passes:
            with self._explained(batch):
                finite.check()
        return accumulator.states

    @contextmanager
    def _explained(self, batch: Sequence[Encoded]) -> Iterator[None]:
        """A context that turns errors of the model on a batch into errors with a remedy."""
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
    ) -> Generator[tuple[Sequence[Encoded], BatchView]]:
        """Batches with their views for measures; while another device works on one, the host prepares the next.

        The largest batch comes first, so that later ones fit into memory that is already allocated.
        """
        planned = list(batches(texts, self.batch_tokens))[::-1]
        views = ((batch, self._view(batch, measures, needs)) for batch in planned)
        return views if self.model.device.type == "cpu" else ahead(views, 2)

    @property
    def makes_no_maps(self) -> bool:
        """Whether a run of all measures needs only statistics of rows, which the model computes without maps."""
        return self._needs() is not None

    def _stream_maps(self, batch: Sequence[Encoded], view: BatchView, accumulator: Accumulator) -> None:
        """Measure the maps of a batch."""
        values: dict[int, torch.Tensor] = {}

        def take(index: int, weights: torch.Tensor, visible: torch.Tensor | None, again: Callable[[], Later] | None) -> None:
            accumulator.add(view, index, weights, visible, again, values.pop(index, None))

        self._stream(batch, take, values.__setitem__)

    def _stream_rows(self, batch: Sequence[Encoded], view: BatchView, needs: RowNeeds, accumulator: Accumulator) -> Finite:
        """Measure a batch without making its maps. The result tells later whether all values were finite."""
        place = {site: index for index, site in enumerate(self.plan.chosen)}
        finite = self.model.finite()

        def request(site: int) -> RowRequest:
            return view.request(self.maps.sites[site], needs, self.model.device)

        def take(site: int, values: Float[torch.Tensor, "b h q statistic"], scores: AttentionScores) -> None:
            rows = RowSums.of(needs, values, view.row_groups(self.maps.sites[site], needs, self.model.device))
            finite.note_sums(site, rows.over("all")[..., ENTROPY])
            accumulator.add_rows(view, place[site], rows, scores)

        self.maps.stream_rows(batch, request, take, frozenset(self.plan.chosen), self._reaches)
        return finite

    def _differentiate(self, batch: Sequence[Encoded], slope: Slope, accumulator: Accumulator) -> None:
        """Run the backward passes for gradients: one per way of masking, which together have the weight of one text. A
        batch whose backward pass would need too much memory is split.
        """
        masked = self.model.objective == "masked"
        draws = slope.draws if masked else 1
        place = {site: index for index, site in enumerate(self.plan.chosen)}
        texts = [text for text in batch if self.model.predicts(text)]
        for part in self.model.backward_memory.batches(texts, slope.share if masked else 1.0) if texts else ():
            for draw in range(draws):
                view = BatchView(part, self._word_rows, lambda documents: self._weigh(documents) / draws, self._forms)
                self.model.differentiate(
                    part,
                    slope,
                    f"{self._seed}/{draw}",
                    partial(_taken, accumulator, view, place, slope),
                    frozenset(self.plan.chosen),
                )

    def _weigh(self, documents: Sequence[str]) -> Float64[np.ndarray, "document replicate"]:
        with timing("bootstrap: weights of documents"):
            return poisson_weights(documents, self._replicates, self._seed)

    def _view(self, batch: Sequence[Encoded], measures: Mapping[Level, Sequence[Measure]], needs: RowNeeds | None) -> BatchView:
        view = BatchView(batch, self._word_rows, self._weigh, self._forms)
        return view.made_ready(self.plan, measures, self.model.device, needs)

    def look(self, texts: Sequence[Encoded]) -> Iterator[tuple[Encoded, dict[Kind, Float[torch.Tensor, "head query key"]]]]:
        """Each text, the shortest first, with the maps of all the plan's heads, grouped by kind.

        Only few texts go through the model at a time, so that memory is bounded, unless a single text needs more.
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
        """The maps of a batch, by kind. Each layer is written to its place when it arrives, so that nothing is held
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


def explain(model: Model, batch: Sequence[Encoded], error: Exception) -> RunError:
    """The error with a remedy for an exception of a model on a batch; a TextError if other texts may work."""
    shape = f"a batch of {len(batch)} texts of up to {max(text.cost for text in batch)} tokens (first: {batch[0].id})"
    said = (str(error).strip() or "no message").splitlines()[0][:300]
    said = said if isinstance(error, HeadscopeError) else f"{type(error).__name__}: {said}"
    if isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _NO_MEMORY):
        return RunError(f"not enough memory for {shape}", "Use a smaller --batch-tokens, or fewer --layers")
    if "CUDA error" in str(error):
        return DeviceError(
            f"the device failed on {shape}: {said}", "Check those texts, or use --device cpu for a clearer message; --resume continues"
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
