"""Tables of a structural probe, from the numbers of every test sentence under every probe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.studies.structural_probe.metrics import METRICS, Scored

if TYPE_CHECKING:
    from jaxtyping import Float64

COLUMNS = ("source", "layer", "rank", "metric", "value", "low", "high", "sd", "seeds", "n", "sentences", "documents")
TRAINING = ("source", "layer", "rank", "seed", "probe", "loss", "best_epoch", "epochs")
PERCENT = ("UUAS", "Root%")


class Tables:
    """A maker of tables from the states of the sweeps."""

    def __init__(self, kept: StateColumns, units: Sequence[str], replicates: int, seed: int) -> None:
        self._kept, self._units, self._replicates, self._seed = kept, units, replicates, seed

    def scores(self, *sweeps: str) -> Table:
        """One row per source, layer, rank and metric: mean over seeds, interval over documents, spread over seeds."""
        rows = [row for sweep in sweeps if len(self._numbers(sweep)) for row in self._rows(sweep)]
        return Table.from_rows(rows, COLUMNS)

    def training(self, *sweeps: str) -> Table:
        """How each probe was trained: its least mean loss on held-out sentences, the epoch of it, and the number of
        epochs.
        """
        rows = []
        for sweep in sweeps:
            for number, (source, layer, rank, seed) in enumerate(self._probes(sweep) if self._trained(sweep) else ()):
                for place, kind in enumerate(("distance", "depth")):
                    loss, best, epochs = (self._kept.numbers(f"{sweep}/{name}")[number, place] for name in ("loss", "best_epoch", "epochs"))
                    rows.append((source, layer, rank, seed, kind, float(loss), int(best), int(epochs)))
        return Table.of({name: [row[place] for row in rows] for place, name in enumerate(TRAINING)})

    def best(self) -> int:
        """The layer of the model whose distance probes have the least held-out loss, without use of test sentences."""
        losses: dict[int, list[float]] = {}
        for (_, layer, _, _), loss in zip(self._probes("layers"), self._kept.numbers("layers/loss")[:, 0], strict=True):
            losses.setdefault(layer, []).append(float(loss))
        return min(losses, key=lambda layer: (float(np.mean(losses[layer])), layer))

    def _rows(self, sweep: str) -> list[dict[str, Any]]:
        numbers = self._numbers(sweep)
        groups: dict[tuple[str, int, int], list[int]] = {}
        for number, (source, layer, rank, _) in enumerate(self._probes(sweep)):
            groups.setdefault((source, layer, rank), []).append(number)
        scored = Scored(numbers, self._units, self._replicates, self._seed)
        rows = {}
        for metric in METRICS:
            times = 100 if metric in PERCENT else 1
            values, counts = scored.of(metric) * times, scored.count(metric)
            means = np.stack([values[:, members].mean(1) for members in groups.values()], 1)
            low, high = scored.interval(means)
            for place, ((source, layer, rank), members) in enumerate(groups.items()):
                rows[place, metric] = {
                    "source": source,
                    "layer": layer if layer >= 0 else None,
                    "rank": rank or None,
                    "metric": metric,
                    "value": float(means[0, place]),
                    "low": float(low[place]),
                    "high": float(high[place]),
                    "sd": float(values[0, members].std(ddof=1)) if len(members) > 1 else None,
                    "seeds": len(members) if rank else None,
                    "n": int(counts[members[0]]),
                    "sentences": len(numbers),
                    "documents": len(set(self._units)),
                }
        return [rows[place, metric] for place in range(len(groups)) for metric in METRICS]

    def _numbers(self, sweep: str) -> Float64[np.ndarray, "sentence probe 9"]:
        return self._kept.numbers(f"{sweep}/numbers")

    def _trained(self, sweep: str) -> bool:
        return bool(len(self._kept.numbers(f"{sweep}/loss")))

    def _probes(self, sweep: str) -> list[tuple[str, int, int, int]]:
        """The source, the layer, the rank and the seed of each probe; layer -1 and rank 0 for the linear baseline."""
        columns = (self._kept.numbers(f"{sweep}/{name}").astype(int).tolist() for name in ("layer", "rank", "seed"))
        return list(zip(self._kept.words(f"{sweep}/source"), *columns, strict=True))
