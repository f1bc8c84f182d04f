"""Cases sorted into cells, and answers counted per cell, against plain loops, on the CPU and on CUDA."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from headscope.core.annotation import Annotation
from headscope.core.document import Word
from headscope.measures import cases as module
from headscope.measures.cases import LABEL_SETS, Cases
from headscope.stats.bootstrap import key_of

DEVICES = ("cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")))
SETS = [LABEL_SETS.number((name,)) for name in ("case one", "case two", "case three")]


def drawn(device: str) -> tuple[Cases, dict[str, np.ndarray]]:
    """Return 200 random cases of four texts, three of which are of one document. A quarter is not counted, and the last
    50 do not enter the counts per document.
    """
    rng = np.random.default_rng(0)
    arrays = {
        "label": rng.choice([*SETS, -1], 200),
        "group": rng.integers(0, 128, 200),
        "right": rng.random((2, 200)) < 0.5,
        "text": rng.integers(0, 4, 200),
    }
    texts = [Annotation.of_sentence(name, (Word("w"),)) for name in ("a", "a", "b", "a")]
    label, group, right, text = (torch.from_numpy(array).to(device) for array in arrays.values())
    return Cases.of(label, group, right, text, 150, texts), arrays


@pytest.mark.parametrize("device", DEVICES)
def test_cases_are_counted_per_cell_and_per_document(device: str) -> None:
    cases, arrays = drawn(device)
    counted = arrays["label"] >= 0
    keys = list(zip(arrays["label"].tolist(), arrays["group"].tolist(), strict=True))
    expected = Counter(key for key, there in zip(keys, counted, strict=True) if there)
    rows = cases.table[1]
    assert {(label, group): n for label, group, _, n, *_ in rows.tolist()} == expected
    for rule in range(2):
        right = Counter(key for key, there in zip(keys, counted & arrays["right"][rule], strict=True) if there)
        assert {(row[0], row[1]): row[4 + rule] for row in rows.tolist() if row[4 + rule]} == right
    names = [("a", "a", "b", "a")[text] for text in arrays["text"]]
    documents: Counter[tuple[int, int]] = Counter()
    for label, name in list(zip(arrays["label"].tolist(), names, strict=True))[:150]:
        documents[label, key_of(name)] += label >= 0
    found: Counter[tuple[int, int]] = Counter()
    for label, key, n, _ in cases.documents.tolist():
        found[label, key] += n
    assert found == +documents


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("device", DEVICES)
def test_answers_are_counted_per_cell(device: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cases, arrays = drawn(device)
    rng = np.random.default_rng(1)
    chosen, place, answer = rng.integers(-1, 3, (2, 4, 5, 7)), rng.integers(0, 7, 200), rng.integers(0, 3, 200)
    if not compiled:
        monkeypatch.setattr(module, "kernel", lambda name: None)
    arguments = (torch.from_numpy(array).to(device) for array in (chosen, arrays["text"], place, answer))
    counts = cases.count_chosen(*arguments).cpu().numpy()
    used, rows = cases.table
    assert counts.sum() == counts[used].sum()
    for number, (label, group, *_) in zip(used, rows.tolist(), strict=True):
        expected = np.zeros((2, 5))
        for case in np.flatnonzero((arrays["label"] == label) & (arrays["group"] == group)):
            expected += chosen[:, arrays["text"][case], :, place[case]] == answer[case]
        assert_array_equal(counts[number], expected)
