"""Maps of other libraries: arrays of every type have the same numbers as in NumPy, or the same errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from safetensors.torch import save_file

import headscope as hs
from headscope.errors import MeasureError
from headscope.runs.map_arrays import map_array, rounding

TOKENS = ["[CLS]", "a", "b", "c", "[SEP]"]
MAPS = np.random.default_rng(0).dirichlet(np.ones(5), (2, 3, 5))  # [layer, head, query, key]
SELF = np.diagonal(MAPS, axis1=2, axis2=3).mean(-1).ravel()


class ByDlpack:
    """An array of another library that supports only DLPack."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self.shape = tensor.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


class ByArray:
    """An array of another library that converts itself to a NumPy array."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape = array.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._array if dtype is None else self._array.astype(dtype)


class OnAnotherDevice(ByArray):
    """An array whose memory torch cannot read, such as one of JAX on a TPU."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("not on this device")

    def __dlpack_device__(self) -> Any:
        return (1, 0)


def attention_to_self(maps: Any, tokens: Any = TOKENS) -> Any:
    return hs.measure(maps, tokens, ["positions"], gallery=0)["positions"].table.where(quantity="self")["value"]


@pytest.mark.parametrize(
    ("kind", "exact"),
    [
        (lambda: MAPS.tolist(), 1e-7),
        (lambda: MAPS.astype(np.float32), 1e-7),
        (lambda: MAPS.astype(np.longdouble), 1e-7),
        (lambda: MAPS.astype(np.float16), 1e-3),
        (lambda: torch.tensor(MAPS, requires_grad=True), 1e-7),
        (lambda: torch.tensor(MAPS).half().requires_grad_(), 1e-3),
        (lambda: torch.tensor(MAPS).bfloat16(), 4e-3),
        (lambda: torch.tensor(MAPS).to(torch.float8_e4m3fn), 6e-2),
        (lambda: torch.tensor(MAPS).mT.contiguous().mT, 1e-7),
        (lambda: ByDlpack(torch.tensor(MAPS)), 1e-7),
        (lambda: ByDlpack(torch.tensor(MAPS).bfloat16()), 4e-3),
        (lambda: ByArray(MAPS), 1e-7),
        (lambda: OnAnotherDevice(MAPS.astype(np.float16)), 1e-3),
        (lambda: tuple(torch.tensor(layer)[None] for layer in MAPS), 1e-7),
        (lambda: tuple(torch.tensor(layer)[None].bfloat16() for layer in MAPS), 4e-3),
        (lambda: [ByDlpack(torch.tensor(layer)) for layer in MAPS], 1e-7),
    ],
)
def test_arrays_of_every_type_have_the_same_numbers(kind: Any, exact: float) -> None:
    assert_allclose(attention_to_self(kind()), SELF, atol=exact)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_tensor_on_a_gpu_has_the_same_numbers() -> None:
    assert_allclose(attention_to_self(torch.tensor(MAPS, device="cuda")), SELF, atol=1e-7)


@pytest.mark.parametrize(("dtype", "exact"), [("float32", 1e-7), ("float16", 1e-3), ("bfloat16", 4e-3)])
def test_arrays_of_jax_have_the_same_numbers(dtype: str, exact: float) -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    assert_allclose(attention_to_self(jax.numpy.asarray(MAPS, dtype=dtype)), SELF, atol=exact)


def test_half_precision_is_not_refused_for_its_rounding() -> None:
    """These weights are exact in bfloat16. A long row whose weights were all rounded up has such a sum."""
    rows, more = (np.broadcast_to(row, (1, 1, 2, 2)) for row in ((0.25390625, 0.7578125), (0.26171875, 0.7734375)))
    for dtype in (torch.bfloat16, torch.float16):
        assert_allclose(attention_to_self(torch.tensor(rows).to(dtype), ["a", "b"]), (0.25390625 + 0.7578125) / 2)
        with pytest.raises(MeasureError, match=r"a row sums to 1\.035"):
            hs.measure(torch.tensor(more).to(dtype), ["a", "b"], ["entropy"])
    with pytest.raises(MeasureError, match=r"a row sums to 1\.012"):
        hs.measure(rows, ["a", "b"], ["entropy"])
    assert [rounding(name) for name in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float128")] == [
        *(0.01, 0.01, 0.02, 0.02, 0.25, 0.01)
    ]


def test_reduced_precision_is_reported() -> None:
    notes = {
        dtype: hs.measure(torch.tensor(MAPS).to(dtype), TOKENS, gallery=0).results.manifest["read"]
        for dtype in (torch.bfloat16, torch.float32)
    }
    assert any("maps in bfloat16, good to about two digits" in line for line in notes[torch.bfloat16])
    assert not notes[torch.float32]


@pytest.mark.parametrize(
    ("maps", "says"),
    [
        (torch.tensor(MAPS).bfloat16() * float("nan"), "negative or undefined"),
        (-torch.tensor(MAPS).half(), "negative or undefined"),
        (torch.tensor(MAPS).bfloat16() * 3, "a row sums to 3"),
        (torch.ones(2, 3, 5, 5, dtype=torch.int64), "attention is int64"),
        (torch.tensor(MAPS)[0], r"of shape \(3, 5, 5\)"),
        (ByDlpack(torch.tensor(MAPS) * 3), "a row sums to 3.000"),
        (ByArray(np.log(MAPS)), "negative or undefined"),
        ([torch.tensor(MAPS[0]), torch.tensor(MAPS[0, :2])], "layers of a text have different shapes"),
        (object(), "attention is object"),
    ],
)
def test_invalid_attention_of_every_type_is_refused(maps: Any, says: str) -> None:
    with pytest.raises(MeasureError, match=says):
        hs.measure(maps, TOKENS, ["entropy"])


def test_memory_that_cannot_be_read_is_refused() -> None:
    class Elsewhere:
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("not on this device")

    with pytest.raises(MeasureError, match="a Elsewhere cannot be read by DLPack"):
        map_array(Elsewhere())


def test_texts_of_different_lengths_have_equal_weight() -> None:
    short = np.random.default_rng(1).dirichlet(np.ones(3), (2, 3, 3))
    expected = (SELF + np.diagonal(short, axis1=2, axis2=3).mean(-1).ravel()) / 2  # the mean over texts of each text's mean
    tokens = [TOKENS, ["[CLS]", "a", "[SEP]"]]
    assert_allclose(attention_to_self([MAPS, torch.tensor(short)], tokens), expected, atol=1e-7)
    assert_allclose(attention_to_self([tuple(torch.tensor(maps)[:, None]) for maps in (MAPS, short)], tokens), expected, atol=1e-7)
    assert_allclose(attention_to_self((MAPS, short), tokens), expected, atol=1e-7)


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_padding_of_a_batch_from_transformers_is_removed(side: str) -> None:
    """`outputs.attentions` of two texts of 5 and 3 tokens: a tuple of layers [2, heads, 5, 5]."""
    short = np.random.default_rng(1).dirichlet(np.ones(3), (2, 3, 3))
    padded = np.full((2, 3, 5, 5), 0.2)  # rows of padding may hold any weights
    inside = slice(0, 3) if side == "right" else slice(2, 5)
    padded[:, :, inside] = 0
    padded[:, :, inside, inside] = short
    layers = tuple(torch.tensor(np.stack([MAPS[layer], padded[layer]])) for layer in range(2))
    tokens = [TOKENS, ["[CLS]", "a", "[SEP]"]]
    assert_allclose(attention_to_self(layers, tokens), attention_to_self([MAPS, short], tokens), atol=1e-7)
    with pytest.raises(MeasureError, match="text 2: 4 tokens for maps of 5 positions, and no padding"):
        attention_to_self(layers, [TOKENS, TOKENS[:4]])


def test_attentions_of_a_padded_batch_equal_those_of_its_texts() -> None:
    """A padded batch has the same numbers as its texts with the padding cut off."""
    model = hs.load("mini", device="cpu")
    texts = ["The keys to the cabinet are on the table.", "It rains."]
    hf = model.tokenizer.hf
    batch = hf(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        model.network.set_attn_implementation("eager")
        attentions = model.network(**batch, output_attentions=True).attentions
    tokens = [hf.convert_ids_to_tokens(hf(text)["input_ids"]) for text in texts]
    each = [tuple(layer[number : number + 1, :, : len(names), : len(names)] for layer in attentions) for number, names in enumerate(tokens)]
    assert_allclose(attention_to_self(attentions, tokens), attention_to_self(each, tokens), atol=1e-7)
    halves = tuple(layer.bfloat16() for layer in attentions)
    assert_allclose(attention_to_self(halves, tokens), attention_to_self(each, tokens), atol=4e-3)


def test_a_file_in_half_precision_has_the_same_numbers(tmp_path: Path) -> None:
    save_file({"attention": torch.tensor(MAPS).bfloat16()}, tmp_path / "maps.safetensors", {"tokens": str(TOKENS).replace("'", '"')})
    run = hs.measure(tmp_path / "maps.safetensors", measures=["positions"], gallery=0)
    assert_allclose(run["positions"].table.where(quantity="self")["value"], SELF, atol=4e-3)
