"""Vectors that know words but little of trees: layer 0 averaged over neighbours (Decay0), or read by an untrained BiLSTM (Proj0)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.studies.hidden_states import States

if TYPE_CHECKING:
    from jaxtyping import Float

    Vectors = Float[np.ndarray, "word d"]


def decay(states: States, twice: bool = False) -> States:
    """Each word as the mean of all words of its sentence, a word weighing half as much with every step away; the word itself counts
    `twice` in the released code.
    """

    def mixed(vectors: Vectors) -> Vectors:
        places = np.arange(len(vectors))
        weights = 0.5 ** np.abs(places[:, None] - places) + twice * np.eye(len(vectors))
        found: Vectors = weights / weights.sum(1, keepdims=True) @ vectors
        return found

    return _mapped(states, mixed)


def projection(states: States, seed: int = 0) -> States:
    """Each word as an untrained BiLSTM of the same size gives it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        one, other = (torch.nn.LSTM(states.size, size) for size in (states.size - states.size // 2, states.size // 2))

    def read(vectors: Vectors) -> Vectors:
        with torch.inference_mode():
            given = torch.from_numpy(vectors)[:, None]
            forwards, backwards = one(given)[0], other(given.flip(0))[0].flip(0)
            found: Vectors = torch.cat([forwards, backwards], -1)[:, 0].numpy()
        return found

    return _mapped(states, read)


def _mapped(states: States, change: Callable[[Vectors], Vectors]) -> States:
    """Layer 0 of all sentences, changed: kept in a file without a name, which is gone when nobody uses it."""
    own = replace(states, layers=(0,), values=np.zeros(0, states.values.dtype))
    with tempfile.TemporaryFile() as file:
        values = np.memmap(file, states.values.dtype, "w+", shape=(own.places[-1],))
    for number in range(len(states)):
        block = change(np.array(states[number][states.layers.index(0)], dtype=np.float32))
        values[own.places[number] : own.places[number + 1]] = block.astype(values.dtype).reshape(-1)
    return replace(own, values=values)
