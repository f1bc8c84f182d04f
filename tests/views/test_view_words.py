"""The descriptions of quantities on pages."""

from __future__ import annotations

import headscope as hs
from headscope.views.run import run_data


def test_gradients_are_not_described_as_attention() -> None:
    results = hs.run("mini", "sampler", ["saliency", "tokens"], limit=2, replicates=0, gallery=0, device="cpu", layers=[1]).results
    descriptions = {(one["measure"], one["name"]): (one["about"], one["share"]) for one in run_data(results)["quantities"]}
    assert descriptions["tokens", "to_sep"] == ("to the closing or separating tokens, [SEP]", True)
    assert descriptions["saliency", "to_sep"] == (
        "how much the loss changes with attention to the closing or separating tokens, [SEP]",
        False,
    )
    assert descriptions["saliency", "to_other"] == ("how much the loss changes with attention to all other tokens", False)
    assert all(words and not share for (measure, _), (words, share) in descriptions.items() if measure == "saliency")
