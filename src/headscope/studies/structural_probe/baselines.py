"""Vectors that know words but little of trees: layer 0 averaged over neighbours (Decay0), or read by an untrained BiLSTM (Proj0)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.studies.hidden_states import HiddenStates

if TYPE_CHECKING:
    from jaxtyping import Float

    Vectors = Float[np.ndarray, "word d"]


def decay(states: HiddenStates, twice: bool = False) -> HiddenStates:
    """Each word as the mean of all words of its sentence, a word weighing half as much with every step away; the word itself counts
    `twice` in the released code.
    """

    def mixed(vectors: Vectors) -> Vectors:
        places = np.arange(len(vectors))
        weights = 0.5 ** np.abs(places[:, None] - places) + twice * np.eye(len(vectors))
        averaged: Vectors = weights / weights.sum(1, keepdims=True) @ vectors
        return averaged

    return _mapped(states, mixed)


def projection(states: HiddenStates, seed: int = 0) -> HiddenStates:
    """Each word as an untrained BiLSTM of the same size gives it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        forward, backward = (torch.nn.LSTM(states.size, size) for size in (states.size - states.size // 2, states.size // 2))

    def read(vectors: Vectors) -> Vectors:
        with torch.inference_mode():
            inputs = torch.from_numpy(vectors)[:, None]
            forwards, backwards = forward(inputs)[0], backward(inputs.flip(0))[0].flip(0)
            joined: Vectors = torch.cat([forwards, backwards], -1)[:, 0].numpy()
        return joined

    return _mapped(states, read)


def _mapped(states: HiddenStates, change: Callable[[Vectors], Vectors]) -> HiddenStates:
    """Layer 0 of all sentences, changed: kept in a file without a name, which is gone when nobody uses it."""
    embeddings = replace(states, layers=(0,), values=np.zeros(0, states.values.dtype))
    with tempfile.TemporaryFile() as file:
        values = np.memmap(file, states.values.dtype, "w+", shape=(embeddings.places[-1],))
    for number in range(len(states)):
        block = change(np.array(states[number][states.layers.index(0)], dtype=np.float32))
        values[embeddings.places[number] : embeddings.places[number + 1]] = block.astype(values.dtype).reshape(-1)
    return replace(embeddings, values=values)
