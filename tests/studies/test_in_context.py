"""In-context learning with and without heads: positions by hand, losses compared with plain forward passes, and the
embedded decoder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.heads import HeadId, HeadLayout, Site
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import RunError
from headscope.models.gates import gated, gates_without, mean_contexts
from headscope.models.load import load
from headscope.models.model import Model
from headscope.results.results import Results
from headscope.studies.execute import execute
from headscope.studies.in_context.choice import HeadSets
from headscope.studies.in_context.places import ContextPlaces
from headscope.studies.in_context.spec import InContextSpec
from headscope.studies.in_context.tables import QUANTITIES, quantities_of
from headscope.views.words import findings
from helpers.recipe_material import save_small_decoder

SPEC = InContextSpec.model_validate({})
LAYOUT = HeadLayout(tuple(Site("decoder", layer, 4, 4, f"layer.{layer}") for layer in range(2)))


def test_positions_are_those_of_olsson_scaled_to_the_length_of_the_context() -> None:
    """Around tokens 50 and 500 of 512; around 25 and 250 of 256, half as many; around 10 and 99 of 101."""
    assert ContextPlaces.of(SPEC.model_copy(update={"width": 1}), 512, False) == ContextPlaces(512, (50, 51), (500, 501), 501, 32)
    assert ContextPlaces.of(SPEC, 512, False) == ContextPlaces(512, (40, 61), (490, 511), 501, 32)
    assert ContextPlaces.of(SPEC, 256, False) == ContextPlaces(256, (20, 31), (245, 256), 251, 32)
    assert ContextPlaces.of(SPEC, 101, True) == ContextPlaces(101, (8, 13), (97, 101), 100, 100)
    assert ContextPlaces.of(SPEC, 8, True) == ContextPlaces(8, (1, 2), (7, 8), 8, 7)


def test_losses_of_one_text_by_hand() -> None:
    """Token t has loss t. The copies in a text of 1 + 2 * 3 tokens are tokens 1 to 3 and 4 to 6."""
    encoder = Encoder(hs.load("mini-decoder").tokenizer, unit="document")
    text = next(iter(encoder.texts(read("repeats:3x1"), Tally())))
    places = ContextPlaces(7, (1, 3), (5, 7), 6, 3)
    losses = np.arange(1.0, 7.0)[None]
    assert_allclose(places.means(text, losses), [[1.5, 5.5, 2, 5, 3.5]])
    assert_allclose(places.curve(losses), [[1.5, 3.5, 5.5]])
    assert_allclose(places.curve(losses[:, :3]), [[1.5, 3, np.nan]])
    found = dict(zip(QUANTITIES, quantities_of(places.means(text, losses)[None])[0, 0], strict=True))
    assert (found["icl_score"], found["copy_drop"]) == (4.0, -3.0)


def test_random_heads_are_other_heads_of_the_same_layers() -> None:
    scores = np.array([0.1, 0.9, 0.2, 0.3, 0.8, 0.0, 0.7, 0.1])
    sets = HeadSets.choose(scores, LAYOUT, (1, 3), 6, seed=0)
    assert sets.strongest == {1: (1,), 3: (1, 4, 6)}
    assert {head for draw in sets.random[1] for head in draw} == {0, 2, 3}
    assert all(len({*draw} & {0, 2, 3}) == 1 and {*draw} >= {5, 7} for draw in sets.random[3])
    assert len({*sets.random[3]}) == 3, "draws differ as long as there are enough other heads"
    assert sets.names(sets.strongest[3]) == "1-2, 2-1, 2-3"
    assert len(sets.systems()) == len(sets.gates()) == 1 + 2 * 7
    assert {site: gate.tolist() for site, gate in sets.gates()[8].items()} == {0: [1, 0, 1, 1], 1: [0, 1, 0, 1]}
    assert sets.random == HeadSets.choose(scores, LAYOUT, (1, 3), 6, seed=0).random


def test_random_heads_include_strong_ones_if_their_layer_has_no_others() -> None:
    sets = HeadSets.choose(np.array([0.9, 0.8, 0.7, 0.6, 0, 0, 0, 0]), LAYOUT, (1, 4), 2, seed=0)
    assert all(draw[0] in (1, 2, 3) for draw in sets.random[1])
    assert sets.random[4] == ((0, 1, 2, 3), (0, 1, 2, 3))
    with pytest.raises(RunError, match="8 heads are to be switched off, but only 8 of the model's 8 have a score"):
        HeadSets.choose(np.arange(8.0), LAYOUT, (8,), 1, seed=0)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(save_small_decoder(tmp_path_factory.mktemp("small")), head=True)


def plain_losses(model: Model, text: Encoded) -> np.ndarray:
    assert model.whole is not None
    with torch.inference_mode():
        logits = model.whole(input_ids=torch.from_numpy(text.ids)[None], use_cache=False).logits[0, :-1].double()
    labels = torch.from_numpy(text.ids[1:])
    return np.asarray(logits.logsumexp(-1) - logits[torch.arange(len(labels)), labels])


@pytest.mark.parametrize("how", ["mean", "zero"])
def test_numbers_equal_plain_forward_passes_for_any_batch_size(small: Model, how: str) -> None:
    corpora = {"corpus": "repeats:6x9", "chosen_on": "repeats:6x9@1", "max_length": 64}
    settings = {**corpora, "heads": 2, "draws": 2, "how": how, "replicates": 0}
    results = execute("in_context", settings, model=small)
    texts = list(Encoder(small.tokenizer, unit="document").texts(read("repeats:6x9"), Tally()))
    means = mean_contexts(small, [texts]) if how == "mean" else None
    chosen = [(row["layer"], row["head"]) for row in results["in_context_heads"]][:2]
    drawn = [tuple(map(int, name.split("-"))) for name in results["in_context_draws"]["off"][0].split(", ")]
    systems: dict[str, list[Any]] = {"none": [], "strongest": chosen, "draw": drawn}
    drop = {}
    for name, heads in systems.items():
        gates = gates_without(small, [HeadId("decoder", layer - 1, head - 1) for layer, head in heads])
        with gated(small, gates, means):
            losses = np.stack([plain_losses(small, text) for text in texts])
        drop[name] = losses[:, :6].mean() - losses[:, 6:].mean()
    summary = {row["off"]: row for row in results["summary"].where(quantity="copy_drop")}
    for name in ("none", "strongest"):
        assert_allclose(summary[name]["value"], drop[name], rtol=1e-4, atol=1e-5)
        assert (summary[name]["n"], summary[name]["documents"]) == (9, 9)
    first = results["in_context_draws"].where(quantity="copy_drop", draw=1)["difference"][0]
    assert_allclose(first, drop["draw"] - drop["none"], rtol=1e-4, atol=1e-5)
    effect = results["in_context_effects"].where(quantity="copy_drop", effect="strongest minus random")["difference"][0]
    assert_allclose(effect, summary["strongest"]["value"] - summary["random"]["value"], atol=1e-9)
    again = execute("in_context", {**settings, "batch_tokens": 20}, model=small)
    for table in ("summary", "in_context_effects", "in_context_loss"):
        column = {"summary": "value", "in_context_effects": "difference"}.get(table, "loss")
        assert_allclose(again[table][column], results[table][column], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def decoder() -> Results:
    settings = {"corpus": "repeats:50x8", "chosen_on": "repeats:50x8@1", "heads": 4, "draws": 2, "replicates": 50}
    return execute("in_context", settings)


def test_the_embedded_decoder_needs_its_induction_heads(decoder: Results) -> None:
    """The model card states losses of 13.2 and 5.1 on the two copies, and the induction heads 5-3, 5-4, 7-3 and 7-4."""
    value = {(row["quantity"], row["off"]): row["value"] for row in decoder["summary"]}
    assert value["first_copy", "none"] == pytest.approx(13.2, abs=0.5)
    assert value["second_copy", "none"] == pytest.approx(5.1, abs=0.7)
    assert {(row["layer"], row["head"]) for row in list(decoder["in_context_heads"])[:4]} == {(5, 3), (5, 4), (7, 3), (7, 4)}
    assert value["copy_drop", "strongest"] < 0.3 * value["copy_drop", "none"]
    assert value["copy_drop", "random"] > 0.8 * value["copy_drop", "none"]
    lines = findings(decoder)
    assert any("the 4 strongest heads by induction (5-" in line and "random heads of the same layers" in line for line in lines)
    assert any("an in-context-learning score of -" in line for line in lines)


def test_random_weights_learn_nothing_in_context() -> None:
    settings = {"corpus": "repeats:20x8", "chosen_on": "repeats:20x8@1", "weights": "random", "heads": 4, "draws": 1, "replicates": 50}
    results = execute("in_context", settings)
    assert all(abs(value) < 0.3 for value in results["summary"].where(quantity="copy_drop")["value"])
    assert all(abs(value) < 0.1 for value in results["in_context_effects"].where(quantity="copy_drop")["difference"])


@pytest.mark.parametrize(
    ("settings", "problem", "remedy"),
    [
        ({"chosen_on": "repeats:50"}, "sequence_1/1 is in --corpus and in --chosen-on", "repeats:50@1"),
        ({"corpus": "sampler", "max_length": 512}, "the longest has 463", "--max-length 256"),
        ({"model": "mini"}, "does not predict each next token", "mini-decoder"),
        ({"heads": 64}, "64 heads are to be switched off, but mini-decoder has 64", "smaller numbers with --heads"),
        ({"early": 60, "late": 50}, "the early token, 60, must be before the late token, 50", None),
        ({"heads": 0}, "numbers of heads begin with 1", None),
    ],
)
def test_invalid_corpora_and_settings_are_refused(settings: dict[str, object], problem: str, remedy: str | None, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=problem) as caught:
        execute("in_context", {"replicates": 0, "max_length": 128, **settings})
    assert remedy is None or remedy in (caught.value.remedy or "")
