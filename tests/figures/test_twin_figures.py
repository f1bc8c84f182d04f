"""The figure of the heads of two models: what is drawn is compared with the numbers, and all files are saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose

from headscope.api import TwinHeads
from headscope.core.heads import HeadId
from headscope.drawing.theme import COLOURS, render
from headscope.errors import HeadscopeError
from headscope.figures import draw
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.studies.registry import REGISTRY
from headscope.studies.twins.figures import NAMED
from headscope.studies.twins.heads import TABLES, Heads
from headscope.studies.twins.states import Sums


@pytest.fixture(scope="module")
def found() -> TwinHeads:
    """The comparison of a model of 3 layers of 4 heads with one of 2 layers of 3 heads, with random distances."""
    rng = np.random.default_rng(0)
    first, second = (
        Heads(name, "encoder", tuple(HeadId("encoder", layer, head) for layer in range(layers) for head in range(heads)))
        for name, layers, heads in (("large", 3, 4), ("little", 2, 3))
    )
    sums = Sums(np.array([5, 3]), rng.uniform(1, 3, (2, 18)), rng.uniform(0.2, 2, (2, 18 * 17 // 2)))
    return TwinHeads(first, second, sums, "word", (0.1,), 0.1, 5, 0, 4, 2, "headscope:0|a:large|b:little")


def test_the_figure_shows_points_mutual_pairs_names_and_distances_of_layers(found: TwinHeads) -> None:
    figure = found.plot("classical")
    plane, layers, _ = figure.axes
    points = found.embed("classical").points
    clouds = [cloud for cloud in plane.collections if isinstance(cloud, PathCollection)]
    assert_allclose(np.concatenate([cloud.get_offsets() for cloud in clouds]), points)
    assert [to_hex(cloud.get_facecolor()[0]).upper() for cloud in clouds] == list(COLOURS[:2])
    legend = plane.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["large (12)", "little (6)"]
    (lines,) = (drawn for drawn in plane.collections if isinstance(drawn, LineCollection))
    pairs = found.mutual()
    ends = [(points[found.a.ids.index(a)], points[12 + found.b.ids.index(b)]) for a, b, _ in pairs]
    assert_allclose(lines.get_segments(), ends)
    named = sorted(str(head) for a, b, _ in pairs[:NAMED] for head in (a, b))
    assert sorted(text.get_text() for text in plane.texts) == named
    x, y = plane.get_xlim(), plane.get_ylim()
    assert x[0] < points[:, 0].min() < points[:, 0].max() < x[1]
    assert y[0] < points[:, 1].min() < points[:, 1].max() < y[1]
    image = layers.images[0].get_array()
    assert image is not None
    assert_allclose(image, found.layers)
    assert [text.get_text() for text in layers.get_yticklabels()] == ["1", "2", "3"]
    assert (layers.get_xlabel(), layers.get_ylabel()) == ("Layer of little", "Layer of large")
    dots, rings = (np.asarray(cloud.get_offsets()) for cloud in layers.collections)
    assert_allclose(dots, np.stack([found.layers.argmin(1), np.arange(3)], 1))
    assert_allclose(rings, np.stack([np.arange(2), found.layers.argmin(0)], 1))
    note = figure.caption.text.replace("\n", "")
    assert f"n = {found.n:,} rows of attention, 12 and 6 heads; mean Jensen–Shannon divergence between words, classical" in note
    assert found.signature.replace("|", "") in note.replace("|", "")


def test_save_writes_every_table_and_the_figure(found: TwinHeads, tmp_path: Path) -> None:
    written = found.save(tmp_path / "new" / "folder")
    assert {path.name for path in written} == {*(f"{name}.{ending}" for name in TABLES for ending in ("csv", "parquet")), "twins.svg"}
    for name in TABLES:
        again = pq.read_table(tmp_path / "new/folder" / f"{name}.parquet")
        assert Table(again).to_text("csv") == found.table(name).to_text("csv")
        assert (tmp_path / "new/folder" / f"{name}.csv").read_text() == found.table(name).to_text("csv")
    assert (tmp_path / "new/folder/twins.svg").read_bytes() == render(found.plot(), "svg")
    with pytest.raises(HeadscopeError, match="no embedding is called 'tsne'"):
        found.plot("tsne")  # type: ignore[arg-type]


def test_the_printed_text_states_the_counts_and_the_signature(found: TwinHeads) -> None:
    compared = "12 heads of large and 6 of little are compared: encoder attention between words"
    assert str(found).startswith(f"{compared}, 8 rows of 4 texts of 2 documents")
    assert str(found).endswith(found.signature)


def test_the_figure_of_a_study_is_that_of_the_comparison(found: TwinHeads) -> None:
    """Heads, sums and settings are read from the tables, the state and the manifest."""
    tables = {name: found.table(name) for name in TABLES}
    settings = {"level": "word", "epsilons": [0.1], "least": 0.1, "replicates": 5, "seed": 0}
    manifest = {"study": "twins", "settings": settings, "counts": {"texts": 4, "documents": 2}, "signature": found.signature}
    manifest |= {"dropped": [], "read": []}
    results = Results(manifest, tables, states={"twins": found.sums.state()})
    assert render(draw("twins", results, sqrt=True), "svg") == render(found.plot(sqrt=True), "svg")
    (figure,) = REGISTRY["twins"].figures
    assert render(REGISTRY["twins"].draw(figure, results), "svg") == render(found.plot(), "svg")
    assert str(TwinHeads.of_study(results)) == str(found)
    with pytest.raises(HeadscopeError, match="Make one with headscope twins A B"):
        draw("twins", Results(manifest, {}))
