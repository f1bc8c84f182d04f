"""What pages say of quantities."""

from __future__ import annotations

import headscope as hs
from headscope.views.run import run_data


def test_gradients_are_not_taken_for_attention() -> None:
    results = hs.run("mini", "sampler", ["saliency", "tokens"], limit=2, replicates=0, gallery=0, device="cpu", layers=[1]).results
    told = {(one["measure"], one["name"]): (one["about"], one["share"]) for one in run_data(results)["quantities"]}
    assert told["tokens", "to_sep"] == ("to the closing or separating tokens, [SEP]", True)
    assert told["saliency", "to_sep"] == ("how much the loss changes with attention to the closing or separating tokens, [SEP]", False)
    assert told["saliency", "to_other"] == ("how much the loss changes with attention to all other tokens", False)
    assert all(words and not share for (measure, _), (words, share) in told.items() if measure == "saliency")
