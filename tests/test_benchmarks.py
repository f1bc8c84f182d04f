from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gpu
import paper
from common import Row, interleaved, ratio, segments, spread, table
from headscope.models.load import load
from headscope.models.model import Model

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("form", [paper.released, paper.lean])
def test_divergences_in_the_form_of_the_paper_match_values_worked_out_by_hand(form: Callable[[paper.Maps, int], np.ndarray]) -> None:
    # Smoothed, 128 keys: two different one-hot rows have divergence 0.692365, a one-hot and an even row
    # 0.666353.
    maps = np.zeros((3, 1, 128))
    maps[0, 0, 3] = maps[1, 0, 70] = 1
    maps[2] = 1 / 128
    expected = np.array([[0, 0.692365, 0.666353], [0.692365, 0, 0.666353], [0.666353, 0.666353, 0]])
    np.testing.assert_allclose(form(maps, 3), expected, atol=1e-6)
    np.testing.assert_allclose(form(maps, 2), expected[:2], atol=1e-6)


@pytest.mark.parametrize(
    ("row", "met", "line"),
    [
        (Row("a", "x", 1.254, most=1.25), False, "| a | x | 1.25 × | at most 1.25 | no |  |"),
        (Row("a", "x", 1.25, most=1.25), True, "| a | x | 1.25 × | at most 1.25 | yes |  |"),
        (Row("c", "x", 1234.5, least=40, note="y"), True, "| c | x | 1,234 × | at least 40 | yes | y |"),
        (Row("b", "x", 33.04, "ms"), None, "| b | x | 33 ms |  |  |  |"),
        (Row("f", "x", None, most=1.5, note="no device"), None, "| f | x | skipped | at most 1.5 |  | no device |"),
    ],
)
def test_a_row_reports_whether_its_bound_is_met(row: Row, met: bool | None, line: str) -> None:
    assert row.met is met
    assert table([row]).splitlines()[2] == line


def test_a_ratio_is_the_median_over_rounds() -> None:
    times = {"a": [2.0, 30.0, 6.0], "b": [1.0, 10.0, 4.0]}
    assert ratio(times, "a", "b") == 2  # of 2, 3 and 1.5
    assert spread(times, "a", "b") == "1.5 to 3"


def test_every_contestant_runs_once_per_round_in_alternating_order() -> None:
    turns: list[str] = []
    times = interleaved({name: lambda name=name: turns.append(name) for name in "ab"}, 3)  # type: ignore[misc]
    assert "".join(turns) == "ab" + "ab" + "ba" + "ab"
    assert {name: len(taken) for name, taken in times.items()} == {"a": 3, "b": 3}


def test_a_device_with_other_figures_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = segments(load(device="cpu"), 2)
    assert gpu.agree("mini", texts, "cpu").value == 0

    def other_model(name: str, dtype: str, device: str) -> Model:
        return load("mini", "cpu", random=None if device == "cpu" else 0)

    monkeypatch.setattr(gpu, "model_of", other_model)
    with pytest.raises(AssertionError, match=r"mini: positions on elsewhere is \S+ from the CPU's, where 1e-04 is allowed"):
        gpu.agree("mini", texts, "elsewhere")


def test_the_gpu_benchmarks_need_neither_pyarrow_nor_numba() -> None:
    code = (
        "import sys\n"
        "for name in ('pyarrow', 'numba', 'typer', 'rich', 'matplotlib', 'pandas'): sys.modules[name] = None\n"
        "import gpu\n"
        "print(len(gpu.rows(True)) > 0 if not gpu.torch.cuda.is_available() else True)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT / "benchmarks")
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
