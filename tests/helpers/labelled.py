"""Results of runs whose states are built by hand from the values of each head in each document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.measures import make
from headscope.measures.means import HeadMeans
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.stats.bootstrap import GROUPS, key_of, keys_of, poisson_weights

REPLICATES = 200
Values = Mapping[str, Any]  # for each quantity an array [document, head], or one row for all documents


def names_of(documents: int) -> list[str]:
    return [f"document {number}" for number in range(documents)]


def means_state(measure: HeadMeans, layout: HeadLayout, values: Values, baseline: Values, documents: int) -> State:
    """The state of a measure of means after one text per document. Quantities without values were not observed."""
    state = measure.start(layout, REPLICATES)
    names = names_of(documents)
    weights = poisson_weights(names, REPLICATES)
    counted = np.zeros((documents, len(measure.quantities()), len(layout.by_kind())), dtype=np.int64)
    for number, quantity in enumerate(measure.quantities()):
        if quantity in values:
            shown = np.broadcast_to(np.asarray(values[quantity], dtype=np.float64), (documents, layout.size))
            even = np.broadcast_to(np.asarray(baseline.get(quantity, 0.0), dtype=np.float64), (documents,))
            state["sum"][:, number] = weights.T @ shown
            state["weight"][:, number] = weights.sum(0)[:, None]
            state["even"][:, number] = (weights.T @ even)[:, None]
            counted[:, number] = 1
    state.add("documents", np.column_stack([keys_of(names), counted.reshape(documents, -1)]))
    return state


def contest_state(measure: Any, layout: HeadLayout, label: str, n: NDArray[Any], right: NDArray[Any], rules: NDArray[Any]) -> State:
    """The state of relations or coreference with one label: `n` has the cases by document, `right` the right answers by
    document, direction and head, and `rules` the right answers by document and rule.
    """
    state: State = measure.start(layout, REPLICATES)
    kind = layout.sites[0].kind
    of_document = [key_of(name) % GROUPS for name in names_of(len(n))]
    for name, values in ((f"right/{label}", right), (f"n/{kind}/{label}", n), (f"rule/{kind}/{label}", rules)):
        prefix, _, rest = name.partition("/")
        total = state.member(f"{prefix}/", rest, lambda values=values: np.zeros((GROUPS, *values.shape[1:]), dtype=np.int64))  # type: ignore[misc]
        np.add.at(total, of_document, values)
    state.member("documents/", f"{kind}/{label}", lambda: np.zeros((0, 2), dtype=np.int64))
    state.add(f"documents/{kind}/{label}", np.column_stack([keys_of(names_of(len(n))), n]))
    return state


def labelled(
    layout: HeadLayout,
    documents: int = 20,
    baselines: Mapping[str, Values] | None = None,
    states: Mapping[str, State] | None = None,
    tables: Mapping[str, Table] | None = None,
    settings: Mapping[str, Any] | None = None,
    **measures: Values,
) -> Results:
    """The results of a run: `measures` has values for measures of means, `states` the states of other measures."""
    built: dict[str, State] = dict(states or {})
    made: dict[str, Table] = dict(tables or {})
    for name, values in measures.items():
        measure = make(name)
        assert isinstance(measure, HeadMeans)
        built[name] = means_state(measure, layout, values, (baselines or {}).get(name, {}), documents)
        made |= {table: Table.of(columns) for table, columns in measure.tables(built[name], layout).items()}
    manifest = {
        "signature": "made by hand",
        "sites": [{"kind": site.kind, "layer": site.layer + 1, "heads": site.heads, "kv_heads": site.kv_heads} for site in layout.sites],
        "measures": {name: {} for name in built},
        "settings": {"model": "m", "seed": 0, "replicates": REPLICATES, **(settings or {})},
        "identity": {"model": "abc", **(settings or {})},
        "tables": list(made),
    }
    return Results(manifest, made, states=built)
