"""Similar heads on pages: the map and the tree of a run that measured distances, and the section of its report."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

import headscope as hs
from headscope.comparison.alike import alike, groups_sentence, layers_sentence, pairs_sentence, twins_sentence
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import HeadscopeWarning
from headscope.figures import draw
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.report import body
from headscope.report.published import BEHAVIOURS
from headscope.report.sections import alike_section
from headscope.report.summary import sentences
from headscope.views.run import run_data
from helpers.architectures import build
from helpers.families import FAMILIES

MEASURES = ["positions", "tokens", "entropy", "relations"]


@pytest.fixture(scope="module")
def run() -> hs.Run:
    return hs.run("mini", "sampler", [*MEASURES, "distances"], limit=60, replicates=20)


@pytest.fixture(scope="module")
def plain() -> hs.Run:
    return hs.run("mini", "sampler", MEASURES, limit=60, replicates=20)


def test_the_map_uses_distances_over_the_whole_corpus(run: hs.Run, plain: hs.Run) -> None:
    map, found = run_data(run.results)["map"], alike(run.results)
    points, stress = found.embed()
    assert_allclose(map["x"], points[:, 0], rtol=1e-4, atol=1e-6)
    assert_allclose(map["y"], points[:, 1], rtol=1e-4, atol=1e-6)
    assert_allclose(map["stress"], stress, rtol=1e-4)
    rows = run.results["distances_pairs"]["n"][0]
    assert map["about"] == f"mean Jensen–Shannon divergence in nats over {rows:,} rows of attention of the whole corpus"
    assert map["behaviour"] == list(found.labels)
    assert map["labels"] == [", ".join(labels) for labels in found.behaviours]
    for at, near in enumerate(map["neighbours"]):
        others = np.delete(np.arange(144), at)
        order = others[np.argsort(found.distances[at, others], kind="stable")][:5]
        assert [head for head, _ in near] == order.tolist()
        assert_allclose([distance for _, distance in near], found.distances[at, order], rtol=1e-4)
    sampled = run_data(plain.results)
    assert "of texts that the run kept" in sampled["map"]["about"]
    assert "labels" not in sampled["map"]
    assert sampled["tree"] is None


def test_the_tree_joins_the_same_heads_as_scipy(run: hs.Run) -> None:
    tree, found = run_data(run.results)["tree"], alike(run.results)
    merges = linkage(squareform(found.distances, checks=False), "average")
    assert_allclose([height for _, _, height in tree["merges"]], merges[:, 2], rtol=1e-4)
    # The members of every cluster, from the numbers of the page and from scipy.
    ours, theirs = [{head} for head in tree["heads"]], [{head} for head in range(144)]
    for (a, b, _), (c, d) in zip(tree["merges"], merges[:, :2].astype(int), strict=True):
        ours.append(ours[a] | ours[b])
        theirs.append(theirs[c] | theirs[d])
        assert ours[-1] == theirs[-1]
    assert (tree["cut"], set(tree["groups"])) == (None, {1}), "of the clusters of 135, 6 and 3 heads, only one is large enough for a group"
    # The leaves of a cluster are adjacent, so branches do not cross.
    row = {head: number for number, head in enumerate(tree["heads"])}
    assert all(max(map(row.__getitem__, one)) - min(map(row.__getitem__, one)) == len(one) - 1 for one in ours)


def test_sentences_and_labels_count_the_same_heads(run: hs.Run) -> None:
    """The sentences and the map of a page count [SEP] heads with the same threshold."""
    stated = next(line for line in sentences(run.results) if line.split(":")[0].endswith("to [SEP]"))
    assert int(stated.split()[0]) == sum("[SEP]" in labels for labels in alike(run.results).behaviours) > 10


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", html)))


def test_the_section_on_similar_heads_starts_with_its_findings(run: hs.Run) -> None:
    html, results = body(run.results), run.results
    section = html.split('<section id="map">')[1].split("</section>")[0]
    found = alike(results)
    stated = [layers_sentence(results, "encoder"), twins_sentence(results, "encoder"), pairs_sentence(results, "encoder")]
    places = [text_of(section).index(line) for line in [*stated, groups_sentence(found, found.groups())]]
    assert places == sorted(places)
    assert section.index('class="findings"') < section.index('data-view="map"') < section.index('data-view="tree"')
    assert stated[0] in sentences(results)
    assert stated[1] in sentences(results)
    first = run.results["distances_pairs"].sort("value")["a"][0]
    assert f'<a href="#head={first}">{first}</a>' in section


def test_published_counts_are_shown_beside_the_measured_counts(run: hs.Run) -> None:
    section, found = alike_section(run.results), alike(run.results)
    assert section is not None
    assert {row["label"]: row["published"] for row in section["counts"]} == BEHAVIOURS
    for row in section["counts"]:
        assert int(row["shown"]) == found.labels.count(row["label"])
        assert int(row["any"]) == sum(row["label"] in labels for labels in found.behaviours) >= int(row["shown"])
    assert sum(row["heads"] for row in section["groups"]) == 144
    maps = np.random.default_rng(0).dirichlet(np.ones(4), (2, 2, 4))
    only = alike_section(hs.measure(maps, ["a", "b", "c", "d"], ["distances", "positions"]).results)
    assert only is not None
    assert [row["label"] for row in only["counts"]] == ["next", "previous"], "only measured behaviours are counted"


def test_long_lists_of_the_heads_of_a_group_are_shortened(run: hs.Run) -> None:
    section = alike_section(run.results)
    assert section is not None
    large = section["groups"][0]
    assert large["heads"] > 36
    assert large["members"].endswith(f" and {large['heads'] - 36} more")


def test_a_run_without_distances_has_a_map_but_no_tree_and_no_findings(plain: hs.Run) -> None:
    html = body(plain.results)
    section = html.split('<section id="map">')[1].split("</section>")[0]
    assert 'data-view="map"' in section
    assert "findings" not in section
    assert "tree" not in section
    assert not any("Near-duplicates" in line for line in sentences(plain.results))
    assert alike_section(plain.results) is None


def test_a_map_needs_no_gallery_but_more_than_one_head() -> None:
    maps = np.random.default_rng(0).dirichlet(np.ones(4), (2, 2, 4))
    tokens = ["a", "b", "c", "d"]
    run = hs.measure(maps, tokens, {"distances": {"sample": 2, "normalise": False}}, gallery=0)
    data = run_data(run.results)
    assert data["map"]["about"] == "sum of Jensen–Shannon divergence in nats over 2 rows of attention sampled from the whole corpus"
    assert 'data-view="tree"' in body(run.results)
    with pytest.warns(HeadscopeWarning, match="distances counted nothing"):
        alone = hs.measure(maps[:1, :1], tokens, ["distances", "positions"], gallery=0)
    assert run_data(alone.results)["map"] is None
    assert "Which heads are alike" not in body(alone.results)


def test_distances_are_not_shares_and_have_a_named_baseline(run: hs.Run) -> None:
    quantities = {one["name"]: one for one in run_data(run.results)["quantities"] if one["measure"] == "distances"}
    assert set(quantities) == {"nearest", "own_layer", "other_layers"}
    assert not any(one["share"] for one in quantities.values())
    assert all(one["baseline_name"] == "all pairs" and one["about"] for one in quantities.values())
    assert set(quantities["nearest"]["baseline"]) == {None}


def test_the_three_kinds_of_an_encoder_decoder_are_compared_separately() -> None:
    tokens = FAMILIES["t5"]()
    network = build("t5", vocabulary=len(tokens))
    model = Model("t5", network, Tokenizer(tokens), *find_sites(network))
    run = hs.run(model, "sampler", ["distances", "tokens"], limit=6, replicates=5, max_length=60)
    data, found = run_data(run.results), alike(run.results)
    heads = len(found.heads)
    assert [kind for kind in ("encoder", "decoder", "cross") if run.alike(kind).kind == kind] == ["encoder", "decoder", "cross"]
    assert sum(x is not None for x in data["map"]["x"]) == heads == len(data["tree"]["heads"])
    assert all(data["map"]["x"][other] is not None for near in data["map"]["neighbours"] for other, _ in near)
    text = text_of(body(run.results))
    for kind in ("Encoder", "Decoder", "Cross"):
        assert f"{kind} attention: {layers_sentence(run.results, kind.lower())}" in text
    assert f"The tree of heads ({found.kind} attention)" in text
    title = draw("clark6", run.results, "cross").axes[0].get_title(loc="left")
    assert title == "By behaviour (cross attention)"
    assert "decoder/1-1" in [label.get_text().split()[-1] for label in draw("dendrogram", run.results, "decoder").axes[0].get_yticklabels()]
