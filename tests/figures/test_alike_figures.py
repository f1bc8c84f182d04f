"""Figures of distances between heads: what is drawn is compared with the tables, and the tree is also read from the
drawing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox
from numpy.testing import assert_allclose
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial.distance import squareform

import headscope as hs
from headscope.comparison.alike import alike
from headscope.drawing.figure import Drawing
from headscope.drawing.point_labels import write_names
from headscope.drawing.theme import COLOURS, render
from headscope.errors import HeadscopeError, RunError
from headscope.figures import RUN_FIGURES, draw
from helpers.excerpts import excerpt

MEASURES = ["distances", "positions", "tokens", "entropy", "relations"]
TOKENS = ["[CLS]", "a", "b", "c", "[SEP]"]


@pytest.fixture(scope="module")
def run() -> hs.Run:
    return hs.run("mini", excerpt(), MEASURES, replicates=20, gallery=0)


def planted() -> np.ndarray:
    """Maps of three layers of two heads: one layer attends to the previous token, one to [SEP], one evenly. The second
    head of each layer differs slightly from the first.
    """
    maps = np.full((3, 2, 5, 5), 0.2)
    maps[0] = 0.9 * np.eye(5, k=-1) + 0.02
    maps[0, :, 0] = 0.2
    maps[1] = 0.02
    maps[1, :, :, 4] = 0.92
    maps[0, 1] = 0.9 * maps[0, 1] + 0.02
    maps[1, 1] = 0.9 * maps[1, 1] + 0.02
    maps[2, 1, :, 0] += 0.05
    return np.asarray(maps / maps.sum(-1, keepdims=True))


@pytest.fixture(scope="module")
def six() -> hs.Run:
    return hs.measure(planted(), TOKENS, ["distances", "positions", "tokens", "entropy"])


def note(figure: Drawing) -> str:
    return figure.caption.text.replace("\n", "")


def clouds(axes: Axes) -> dict[str, PathCollection]:
    return {str(cloud.get_label()): cloud for cloud in axes.collections if isinstance(cloud, PathCollection)}


def places(cloud: PathCollection) -> np.ndarray:
    return np.asarray(cloud.get_offsets())


def boxes_of_names(axes: Axes) -> dict[str, Bbox]:
    """The box of each name in the axes, without the lines that lead to the names."""
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    return {text.get_text(): Text.get_window_extent(text, renderer) for text in axes.texts}


def test_figure_6_colours_every_head_by_behaviour_and_by_layer(six: hs.Run) -> None:
    figure = draw("clark6", six.results)
    left, right, bar = figure.axes
    found = alike(six.results)
    points = found.embed().points
    drawn = clouds(left)
    assert set(drawn) == {"previous (2)", "[SEP] (2)", "broad (2)"}
    for label, heads, number in (("previous (2)", [0, 1], 1), ("broad (2)", [4, 5], 2), ("[SEP] (2)", [2, 3], 4)):
        assert_allclose(places(drawn[label]), points[heads])
        assert to_hex(drawn[label].get_facecolor()[0]) == COLOURS[number].lower()
    legend = left.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == set(drawn)
    (cloud,) = (cloud for cloud in right.collections if isinstance(cloud, PathCollection))
    assert_allclose(places(cloud), points)
    assert list(np.asarray(cloud.get_array())) == [1, 1, 2, 2, 3, 3]
    assert [int(tick) for tick in bar.get_xticks()] == [1, 2, 3]
    assert left.get_xlim() == right.get_xlim()
    assert "n = 5 rows of attention, 6 heads; mean Jensen–Shannon divergence, metric scaling, normalised stress" in note(figure)
    assert f"stress {found.embed().stress:.3f}" in note(figure)
    assert six.signature in note(figure)


def test_both_axes_of_figure_6_have_the_same_scale_and_contain_all_points(run: hs.Run, six: hs.Run) -> None:
    for results in (run.results, six.results):
        axes = draw("clark6", results).axes[0]
        box = axes.get_window_extent()
        assert_allclose(box.width / np.ptp(axes.get_xlim()), box.height / np.ptp(axes.get_ylim()), rtol=1e-6)
        drawn = np.concatenate([places(cloud) for cloud in clouds(axes).values()])
        assert axes.get_xlim()[0] < drawn[:, 0].min() < drawn[:, 0].max() < axes.get_xlim()[1]
        assert axes.get_ylim()[0] < drawn[:, 1].min() < drawn[:, 1].max() < axes.get_ylim()[1]


def test_heads_of_other_types_are_named_at_their_points(run: hs.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {5: "obj", 6: "obj", 40: "induction", 77: "coreference", 78: "nmod:poss", 140: "case"}
    found = alike(run.results)
    found = replace(found, behaviours=tuple((names[at],) if at in names else labels for at, labels in enumerate(found.behaviours)))
    monkeypatch.setattr("headscope.figures.alike.alike", lambda *_: found)
    axes = draw("clark6", run.results).axes[0]
    points = found.embed().points
    surface = {"next", "previous", "broad", "[CLS]", "[SEP]", "punctuation", ""}
    expected = {
        f"{head} {label}": point for head, label, point in zip(found.heads, found.labels, points, strict=True) if label not in surface
    }
    assert len(expected) >= len(names)
    written = {text.get_text(): text for text in axes.texts}
    assert set(written) == set(expected)
    for name, text in written.items():
        assert isinstance(text, Annotation)
        assert_allclose(text.xy, expected[name])
    assert f"another type, named ({len(expected)})" in clouds(axes)
    boxes = list(boxes_of_names(axes).values())
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:number]), "names overlap"


def test_figure_6_uses_the_chosen_embedding_and_square_roots(six: hs.Run) -> None:
    for method, sqrt in (("classical", False), ("nonmetric", False), ("metric", True)):
        figure = draw("clark6", six.results, embedding=method, sqrt=sqrt)
        points, stress = alike(six.results).embed(method, sqrt)  # type: ignore[arg-type]
        (cloud,) = clouds(figure.axes[1]).values()
        assert_allclose(places(cloud), points)
        kind = "Kruskal's stress-1" if method == "nonmetric" else "normalised stress"
        assert f"{method} scaling, {kind} {stress:.3f}" in note(figure)
        assert ("square roots of" in note(figure)) == sqrt


def test_names_do_not_overlap_each_other_or_points() -> None:
    figure = Figure(figsize=(4, 4))
    axes = figure.add_axes((0, 0, 1, 1))
    points = np.array([[0.5, 0.5], [0.52, 0.5], [0.5, 0.53], [0.47, 0.5], [0.5, 0.46], [0.99, 0.02]])
    axes.set(xlim=(0, 1), ylim=(0, 1))
    write_names(axes, points, ["8-4 obj", "8-5 nsubj", "8-6 det", "8-7 case", "", "1-1 corner"])
    boxes = boxes_of_names(axes)
    assert len(boxes) == 5
    for name, box in boxes.items():
        assert not any(box.overlaps(other) for also, other in boxes.items() if also != name)
        assert not any(box.contains(*place) for place in axes.transData.transform(points))
        assert box.x0 >= 0
        assert box.x1 <= 400
        assert box.y0 >= 0
    lines = {text.get_text(): text.arrow_patch is not None for text in axes.texts}  # type: ignore[attr-defined]
    assert not lines["1-1 corner"], "a name with room beside its point needs no line"


def branches(axes: Axes) -> list[tuple[np.ndarray, str]]:
    (lines,) = (lines for lines in axes.collections if isinstance(lines, LineCollection))
    return [(np.asarray(path), to_hex(colour)) for path, colour in zip(lines.get_segments(), lines.get_colors(), strict=True)]


def test_the_tree_has_the_heights_of_the_clusters_and_one_leaf_per_head(run: hs.Run) -> None:
    figure = draw("dendrogram", run.results, groups=7)
    axes, found = figure.axes[0], alike(run.results)
    expected = linkage(squareform(found.distances, checks=False), "average")
    drawn = [path for path, _ in branches(axes)]
    assert_allclose([path[1, 0] for path in drawn], expected[:, 2])
    names = [text.get_text().split()[-1] for text in axes.get_yticklabels()]
    assert sorted(names) == sorted(map(str, found.heads))
    # The height of the lowest branch above two heads: found by following the drawing from the leaves, and by scipy.
    number = {name: place for place, name in enumerate(names)}
    cophenetic = squareform(cophenet(expected))
    for a, b in ((0, 1), (3, 77), (20, 140)):
        rows = sorted((number[str(found.heads[a])], number[str(found.heads[b])]))
        assert_allclose(joining_height(drawn, *rows), cophenetic[a, b])


def joining_height(paths: list[np.ndarray], first: int, last: int) -> float:
    """The height of the lowest branch that joins two leaves, read from the drawing."""
    at = {first: (0.0, float(first)), last: (0.0, float(last))}
    for path in paths:
        for leaf, (height, y) in at.items():
            if any(np.allclose(end, (height, y)) for end in (path[0], path[3])):
                at[leaf] = (float(path[1, 0]), float(path[1, 1] + path[2, 1]) / 2)
        if at[first] == at[last]:
            return at[first][0]
    raise AssertionError("the two are never joined")


def test_the_cut_separates_the_groups_and_branches_below_it_are_coloured(run: hs.Run) -> None:
    axes = draw("dendrogram", run.results, groups=7).axes[0]
    (cut,) = (line for line in axes.lines if line.get_linestyle() == "--")
    x = float(np.asarray(cut.get_xdata())[0])
    found = alike(run.results)
    groups = fcluster(linkage(squareform(found.distances, checks=False), "average"), x, "distance")
    assert len(set(groups)) == 7
    sizes = sorted((int(size) for size in np.bincount(groups) if size > 1), reverse=True)
    labels = [text.get_text().strip() for text in axes.texts]
    assert sorted((int(label.split("(")[1][:-1]) for label in labels), reverse=True) == sizes
    assert [label.split()[0] for label in sorted(labels, key=lambda label: int(label.split()[0]))] == [
        str(n + 1) for n in range(len(sizes))
    ]
    for path, colour in branches(axes):
        assert (colour in {one.lower() for one in COLOURS[:6]}) == (path[1, 0] < x)


def test_the_tree_uses_the_chosen_linkage_square_roots_and_groups(six: hs.Run) -> None:
    figure = draw("dendrogram", six.results, linkage="single", sqrt=True)
    expected = linkage(squareform(np.sqrt(alike(six.results).distances), checks=False), "single")
    assert_allclose([path[1, 0] for path, _ in branches(figure.axes[0])], expected[:, 2])
    assert "single linkage" in figure.axes[0].get_xlabel()
    assert "√nats" in figure.axes[0].get_xlabel()
    assert "3 groups of 2, 2 and 2 heads, mean silhouette" in note(figure)
    alone = draw("dendrogram", six.results, groups=1)
    assert not alone.axes[0].lines
    assert "1 group;" in note(alone).replace(". ", ";").replace("1 group.", "1 group;")


def test_the_matrix_is_ordered_by_layer_or_by_tree(run: hs.Run) -> None:
    found = alike(run.results)
    by_layer = draw("distances", run.results).axes[0]
    assert_allclose(np.asarray(by_layer.images[0].get_array()), found.distances)
    assert [text.get_text() for text in by_layer.get_xticklabels()] == [str(layer) for layer in range(1, 13)]
    by_tree = draw("distances", run.results, order="tree", sqrt=True).axes[0]
    names = [text.get_text() for text in by_tree.get_yticklabels()]
    assert names == [text.get_text() for text in by_tree.get_xticklabels()]
    order = [list(map(str, found.heads)).index(name) for name in names]
    assert sorted(order) == list(range(144))
    assert_allclose(np.asarray(by_tree.images[0].get_array()), np.sqrt(found.distances)[np.ix_(order, order)])
    adjacent = found.distances[order[:-1], order[1:]].mean()
    assert adjacent < found.distances[range(143), range(1, 144)].mean() * 0.7, "similar heads are adjacent"


@pytest.mark.parametrize("name", ["clark6", "dendrogram", "distances"])
def test_figures_are_reproducible_and_their_captions_state_n(six: hs.Run, name: str) -> None:
    svg = render(draw(name, six.results), "svg")
    assert svg == render(draw(name, six.results), "svg")
    assert b"n = 5 rows of attention, 6 heads" in svg
    assert b"nats" in svg or name == "clark6"
    assert "(distances)" in RUN_FIGURES[name]


def test_sums_are_labelled_as_sums_and_heads_without_a_behaviour_as_other() -> None:
    run = hs.measure(planted(), TOKENS, {"distances": {"normalise": False}})
    assert "nats, summed over rows" in draw("dendrogram", run.results).axes[0].get_xlabel()
    figure = run["distances"].plot()
    assert clouds(figure.axes[0]).keys() == {"other (6)"}, "without other measures, the behaviour of heads is unknown"


def test_figures_of_two_identical_heads_are_drawn() -> None:
    run = hs.measure(np.full((1, 2, 3, 3), 1 / 3), ["a", "b", "c"], ["distances"])
    for name in ("clark6", "dendrogram", "distances"):
        assert render(draw(name, run.results), "png")


@pytest.mark.parametrize(
    ("name", "choices", "says"),
    [
        ("clark6", {"groups": 3}, "clark6 has no option groups. It is for dendrogram"),
        ("clark4", {"sqrt": True}, "clark4 has no option sqrt. It is for clark6, dendrogram, distances"),
        ("distances", {"order": "random"}, "there is no order 'random'. Use layer or tree"),
        ("clark6", {"embedding": "tsne"}, "no embedding is called 'tsne'"),
        ("dendrogram", {"linkage": "ward"}, "no linkage is called 'ward'"),
        ("dendrogram", {"groups": 7}, "6 heads cannot be in 7 groups"),
    ],
)
def test_invalid_options_are_refused(six: hs.Run, name: str, choices: dict[str, Any], says: str) -> None:
    with pytest.raises(HeadscopeError) as error:
        draw(name, six.results, **choices)
    assert says in str(error.value)


def test_a_run_without_distances_is_refused_with_the_missing_option() -> None:
    run = hs.measure(planted(), TOKENS, ["entropy"])
    with pytest.raises(RunError, match="--measures distances"):
        draw("clark6", run.results)
