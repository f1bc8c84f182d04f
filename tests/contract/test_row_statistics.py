"""On every architecture, row statistics without maps equal those of the maps, or they are refused with a reason."""

from __future__ import annotations

import pytest
import torch
from transformers import PreTrainedModel

from headscope.core.rows import Reach, RowRequest
from headscope.models import fused
from headscope.models.sites import find_sites
from headscope.models.verify import refused_without_maps
from helpers.architectures import ALL, BYPASS, build, inputs

# Models with soft caps, learned sinks or distance biases: their scores are not scaled products of queries and keys.
NEED_MAPS = {"gemma2", "gpt_oss", "mt5", "t5"}


@pytest.mark.parametrize("name", [name for name in ALL if name not in BYPASS])
def test_row_statistics_without_maps_equal_those_of_the_maps(name: str) -> None:
    model = build(name)
    before = model.config._attn_implementation
    sites, _ = find_sites(model)
    refused = refused_without_maps(model, sites)
    assert (refused is not None) == (name in NEED_MAPS), refused
    assert model.config._attn_implementation == before or name in NEED_MAPS
    if refused is not None:
        return
    batch = inputs(model)
    pairs = fused.differences(model, sites, batch)
    assert [site for site, *_ in pairs] == list(sites)
    for site, values, expected in pairs:
        torch.testing.assert_close(values[..., 1], expected[..., 1], rtol=0, atol=2e-5, msg=f"entropy of {site.name}")
        torch.testing.assert_close(values[..., 2:], expected[..., 2:], rtol=0, atol=5e-6, msg=site.name)


def reaches(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> list[Reach]:
    sites, _ = find_sites(model)
    sizes = batch["attention_mask"].sum(1).tolist()
    seen = []
    fused.stream_rows(
        model,
        sites,
        batch,
        fused.lengths_of(sizes, sizes, sites, torch.device("cpu")),
        lambda index: RowRequest(torch.zeros((len(batch["input_ids"]), batch["input_ids"].shape[1], 0))),
        lambda index, values, scores: seen.append(scores.reach),
    )
    return seen


def test_the_reach_of_rows_is_read_from_the_mask() -> None:
    assert reaches(build("bert"), inputs(build("bert"))) == [Reach()] * 2
    assert reaches(build("llama"), inputs(build("llama"))) == [Reach(None, 0)] * 2
    whole = {name: tensor[:1] for name, tensor in inputs(build("llama")).items()}  # without padding, transformers passes no mask
    assert reaches(build("llama"), whole) == [Reach(None, 0)] * 2
    assert reaches(build("bert"), {name: tensor[:1] for name, tensor in inputs(build("bert")).items()}) == [Reach()] * 2


def lengths(*rows: int) -> fused.Lengths:
    return fused.Lengths.of(rows, rows, torch.device("cpu"))


def test_masks_other_than_causal_windows_and_padding_are_refused() -> None:
    causal = torch.ones(2, 1, 6, 6, dtype=torch.bool).tril()
    assert fused.reach_of(causal, lengths(6, 6), 6, 6) == Reach(None, 0)
    window = causal & ~causal.tril(-3)
    assert fused.reach_of(window, lengths(6, 6), 6, 6) == Reach(2, 0)
    padded = causal.clone()
    padded[1, :, :, 4:] = False
    assert fused.reach_of(padded, lengths(6, 4), 6, 6) == Reach(None, 0)
    blocks = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    blocks[:, :, :3, 3:], blocks[:, :, 3:, :3] = False, False
    for mask, length in ((blocks, lengths(6, 6)), (padded, lengths(6, 5)), (causal.float(), lengths(6, 6))):
        with pytest.raises(fused.OtherMask):
            fused.reach_of(mask, length, 6, 6)


def test_masks_of_shorter_texts_are_compared_when_check_is_called() -> None:
    reaches = fused.Reaches()
    window = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril() & ~torch.ones(1, 1, 6, 6, dtype=torch.bool).tril(-3)
    short, other = window[:, :, :4, :4], torch.ones(1, 1, 4, 4, dtype=torch.bool)
    assert reaches.find(0, window, lengths(6), 6, 6) == Reach(2, 0)
    assert reaches.find(0, short, lengths(4), 4, 4) == Reach(2, 0)
    reaches.check()
    assert reaches.find(0, other, lengths(4), 4, 4) == Reach(2, 0)
    with pytest.raises(fused.OtherMask):
        reaches.check()
    assert reaches.find(0, other, lengths(4), 4, 4) == Reach()  # check cleared the known reaches
    reaches.check()
