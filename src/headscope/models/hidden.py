"""The hidden states of each layer of a model. Layers are numbered as in Hugging Face: 0 is the output of the
embeddings, after their normalisation, and ℓ is the output of block ℓ. In most decoders the last one is normalised once
more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.models.dry_run import dry_inputs
from headscope.models.model import Model

if TYPE_CHECKING:
    from jaxtyping import Float


def hidden(model: Model, texts: Sequence[Encoded]) -> tuple[Float[torch.Tensor, "text token d"], ...]:
    """The hidden states of a batch of texts, one tensor per layer, padded on the right. For an encoder-decoder, those
    of its encoder.
    """
    return _hidden(model, model.inputs(texts))


def hidden_shape(model: Model) -> tuple[int, int]:
    """The number of layers of hidden states, including layer 0, and the size of a hidden state."""
    states = _hidden(model, dry_inputs(model.network))
    return len(states), states[0].shape[-1]


def _hidden(model: Model, inputs: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    network: Any = model.network
    options = {"use_cache": False}
    if model.encoder_decoder:
        network, options = network.get_encoder(), {}
        inputs = {name: tensor for name, tensor in inputs.items() if not name.startswith("decoder_")}
    with torch.inference_mode():
        states = getattr(network(**inputs, **options, output_hidden_states=True), "hidden_states", None)
    expected = inputs["input_ids"].shape
    if not states or any(state.shape[:2] != expected or state.shape != states[0].shape for state in states):
        raise ModelError(
            f"{type(model.network).__name__} does not give one vector per token in every layer",
            "Choose a model whose layers keep the number of tokens and the size of the vectors",
        )
    return tuple(states)
