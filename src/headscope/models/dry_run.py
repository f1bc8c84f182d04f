"""The dry run that verifies a model: two short texts of token ids, one of them padded, and windows shorter than the
texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from headscope.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Tokens of the longer text. Different lengths on the two sides distinguish cross-attention from self-attention.
SOURCE, TARGET = 23, 17
# The number of tokens by which the other text is shorter. It is smaller than a window, because a row that sees only
# padding would be NaN in float64.
PADDING = 3
# Settings that hide distant or unlikely tokens from a row. A dry run lowers them to WINDOW, so that they matter.
WINDOWS = ("sliding_window", "local_attention", "attention_chunk_size", "index_topk", "index_topk_blocks", "topk_blocks")
WINDOW = 6


def embedding_rows(model: PreTrainedModel) -> int:
    """The number of token embeddings of a model; an error if it does not read tokens."""
    try:
        return int(model.get_input_embeddings().weight.shape[0])
    except (NotImplementedError, AttributeError, TypeError):
        raise ModelError(
            f"{type(model).__name__} has no embeddings of tokens",
            "headscope reads text models: encoders, decoders and encoder-decoders that read the tokens of a text",
        ) from None


def dry_inputs(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Two texts of non-special token ids, padded on the right, and two targets for an encoder-decoder."""
    config = model.config.get_text_config()
    limit = getattr(config, "max_position_embeddings", None)
    source = min(SOURCE, limit - 4) if isinstance(limit, int) and limit > 12 else SOURCE
    special = {value for name, value in vars(config).items() if name.endswith("_token_id") and isinstance(value, int)}
    rows = embedding_rows(model)
    ids = [number for number in range(min(rows, 400)) if number not in special]
    device = next(model.parameters()).device

    def side(length: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        places = torch.arange(length)
        mask = torch.stack([places < length, places < length - PADDING]).long()
        texts = torch.stack([torch.tensor(ids)[(places * step + row * 5) % len(ids)] for row in range(2)])
        pad = getattr(config, "pad_token_id", None)
        pad = pad if isinstance(pad, int) and 0 <= pad < rows else 0
        return torch.where(mask.bool(), texts, pad).to(device), mask.to(device)

    inputs = dict(zip(("input_ids", "attention_mask"), side(source, 7), strict=True))
    if model.config.is_encoder_decoder:
        inputs |= dict(zip(("decoder_input_ids", "decoder_attention_mask"), side(min(TARGET, source - 2), 11), strict=True))
    return inputs


def alone(inputs: Mapping[str, torch.Tensor], row: int) -> dict[str, torch.Tensor]:
    """One text of a batch without its padding."""
    lengths = {side: int(inputs[f"{side}attention_mask"][row].sum()) for side in ("", "decoder_") if f"{side}attention_mask" in inputs}
    return {name: tensor[row : row + 1, : lengths["decoder_" if name.startswith("decoder_") else ""]] for name, tensor in inputs.items()}


@contextmanager
def small_windows(model: PreTrainedModel) -> Iterator[None]:
    """Lower every window, and every number of selected tokens, to `WINDOW` within the context.

    A window of 4,096 tokens would have no effect on a short text, and a longer text would take minutes.
    """
    modules = list(model.modules())
    configs = [getattr(module, "config", None) for module in modules]
    holders = {id(holder): vars(holder) for holder in (*configs, *modules) if hasattr(holder, "__dict__")}
    before: list[tuple[dict[str, Any], str, int]] = [
        (settings, name, settings[name])
        for settings in holders.values()
        for name in WINDOWS
        if isinstance(settings.get(name), int) and settings[name] > WINDOW
    ]
    for settings, name, _ in before:
        settings[name] = WINDOW
    try:
        yield
    finally:
        for settings, name, value in before:
            settings[name] = value
