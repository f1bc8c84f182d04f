"""States on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headscope.core.state import State
from headscope.results.folder import encode_states, read_states


def test_arrays_that_are_not_contiguous_in_memory_are_read_back_unchanged(tmp_path: Path) -> None:
    transposed = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    path = tmp_path / "states.safetensors"
    path.write_bytes(encode_states({"some": State({"turned": transposed}, {"turned": "sum"})}, {}))
    np.testing.assert_array_equal(read_states(path)[0]["some"]["turned"], transposed)
