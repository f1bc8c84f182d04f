"""Early stopping of probes that are trained together, with given losses."""

from __future__ import annotations

import math

import torch

from headscope.studies.patience import Patience, keep_best

# One column per probe: the first improves at every check, the second stops before it improves on check 1, and the third
# improves by less than 0.1 before it stops.
LOSSES = [[5.0, 3.0, 2.0], [4.0, 4.0, 1.95], [3.0, 3.0, 1.91], [2.0, 0.0, 1.0]]


def test_each_probe_stops_by_its_own_losses() -> None:
    patience, best = Patience.begin(3), torch.zeros(3, 2)
    better = []
    for number, losses in enumerate(LOSSES, 1):
        gained = patience.check(torch.tensor(losses, dtype=torch.float64), number, 0.1, 2)
        keep_best(best, torch.full((3, 2), float(number)), gained)
        better.append(gained.tolist())
    # The second and the third probe stop after check 3: their improvement at check 4 does not count.
    assert better == [[True, True, True], [True, False, False], [True, False, False], [True, False, False]]
    assert patience.loss.tolist() == [2.0, 3.0, 2.0]
    assert patience.best.tolist() == [4.0, 1.0, 1.0]
    assert patience.stale.tolist() == [0.0, 3.0, 3.0]
    assert patience.running.tolist() == [True, False, False]
    assert best.tolist() == [[4.0, 4.0], [1.0, 1.0], [1.0, 1.0]]


def test_a_loss_of_nan_or_infinity_is_not_an_improvement() -> None:
    patience = Patience.begin(1, 2)
    assert patience.check(torch.tensor([[math.nan, math.inf]], dtype=torch.float64), 1, 0.0, 1).tolist() == [[False, False]]
    assert patience.best.tolist() == [[0.0, 0.0]]
    assert not patience.running.any()
