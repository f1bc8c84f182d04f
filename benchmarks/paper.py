"""Jensen-Shannon divergences in plain numpy, in the form of the paper's released code: a second implementation.

It loops over heads. For each head it smooths the maps, takes the mean with every other head, and adds up the KL
divergences of both sides from it, so that every pair is computed twice. It computes in the type of the maps: float32,
or the float16 of the released files.

The command `python benchmarks/paper.py MAPS.npy` works in a process without any other library, as that code does. For
each line `FORM HEADS` that it reads, it computes the rows of that many heads and answers with a line.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

Maps = NDArray[np.floating]


def smooth(maps: Maps) -> Maps:
    """The maps with a thousandth of even attention mixed in, as in the released code, so that no logarithm is of 0."""
    smoothed: Maps = maps * 0.999 + 0.001 / maps.shape[-1]
    return smoothed


def released(maps: Maps, heads: int) -> NDArray[np.float64]:
    """The first `heads` rows of the matrix of divergences, summed over query rows, with as much work as in the released
    code.
    """
    out = np.zeros((heads, len(maps)))
    for number in range(heads):
        own, others = smooth(maps[number]), smooth(maps)
        mean = (own + others) / 2
        terms = own * np.log(own / mean)
        terms += others * np.log(others / mean)
        terms /= 2
        out[number] = terms.sum(-1).sum(-1)
    return out


def lean(maps: Maps, heads: int) -> NDArray[np.float64]:
    """The same rows, with the maps smoothed once and each KL divergence summed at once."""
    smoothed, out = smooth(maps), np.zeros((heads, len(maps)))
    for number in range(heads):
        mean = (smoothed[number] + smoothed) / 2
        out[number] = (_kl(smoothed[number], mean) + _kl(smoothed, mean)).sum(-1) / 2
    return out


def _kl(p: Maps, q: Maps) -> Maps:
    summed: Maps = (p * np.log(p / q)).sum(-1)
    return summed


def main() -> None:
    """Compute the rows that each input line requests."""
    maps = np.load(sys.argv[1])
    half = maps.astype(np.float16)
    for line in sys.stdin:
        form, heads = line.split()
        if form == "half":
            released(half, int(heads))
        else:
            (lean if form == "lean" else released)(maps, int(heads))
        print("done", flush=True)


if __name__ == "__main__":
    main()
