"""Attention maps of other libraries as NumPy arrays: from torch, JAX, anything with `__dlpack__` or `__array__`, and
the outputs of transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from headscope.errors import MeasureError

ROUNDING, HALF_ROUNDING = 0.01, 0.02  # how far the sum of a row may be from 1, in single and in half precision


def rounding(dtype: str) -> float:
    """How far the sum of a row may be from 1 in maps of this type: 0.01; in half precision 0.02, as in the check of
    models; in 8 bits twice the distance from 1 to the next number.
    """
    known = getattr(torch, dtype, None)
    if not isinstance(known, torch.dtype) or not known.is_floating_point or known.itemsize > 2:
        return ROUNDING
    return max(HALF_ROUNDING, 2 * torch.finfo(known).eps)


def map_array(maps: Any) -> tuple[np.ndarray, str]:
    """The maps of one text as an array, and their original type. Smaller types are converted to float32.

    A list or tuple of layers is stacked; each layer may be a batch of one text, as transformers returns it.
    """
    if isinstance(maps, list | tuple):
        arrays = [map_array(layer) for layer in maps]
        if len({layer.shape for layer, _ in arrays}) > 1:
            raise MeasureError("the layers of a text have different shapes", "Give [layers, heads, T, T] for one text")
        stacked = np.stack([layer for layer, _ in arrays]) if arrays else np.zeros(0)
        single = stacked.ndim == 5 and len(stacked[0]) == 1
        return (stacked[:, 0] if single else stacked), max((dtype for _, dtype in arrays), key=rounding, default="float64")
    if not isinstance(maps, np.ndarray | torch.Tensor) and hasattr(maps, "__dlpack__"):
        try:
            maps = from_dlpack(maps)
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):  # a device or a type that torch does not have here
            if not hasattr(maps, "__array__"):
                raise MeasureError(
                    f"a {type(maps).__name__} cannot be read by DLPack", "Copy it to the CPU, as an array of floats"
                ) from None
    if isinstance(maps, torch.Tensor):
        dtype = str(maps.dtype).removeprefix("torch.")
        tensor = maps.detach().cpu()
        small = tensor.is_floating_point() and tensor.element_size() <= 2
        return (tensor.float() if small else tensor).resolve_conj().numpy(), dtype
    array = np.asarray(maps)
    # Types that NumPy itself does not have, such as JAX's bfloat16, do not count as floats there.
    small = array.dtype == np.float16 or (array.dtype.kind == "V" and "float" in array.dtype.name)
    return (array.astype(np.float32) if small else array), array.dtype.name


def text_arrays(attention: Any, tokens: Sequence[Any]) -> list[tuple[np.ndarray, str]]:
    """The maps of each of several texts as an array, and their original type.

    A list holds texts. A tuple of equal layers [texts, heads, T, T], as transformers returns it for a batch, is divided
    into texts, and the padding of each text, on the right or on the left, is cut off.
    """
    shapes = {tuple(getattr(layer, "shape", ())) for layer in attention} if isinstance(attention, tuple) else set()
    if len(shapes) != 1 or len(shape := list(shapes.pop())) != 4 or shape[0] != len(tokens):
        return [map_array(text) for text in attention]
    array, dtype = map_array(attention)
    batch = array[:, None] if array.ndim == 4 else array  # a batch of one text has lost its axis
    return [(_without_padding(batch[:, number], len(names), number), dtype) for number, names in enumerate(tokens)]


def _without_padding(maps: np.ndarray, length: int, number: int) -> np.ndarray:
    """The maps of the tokens of a text, cut out of maps with padding."""
    width = maps.shape[-1]
    if length >= width:
        return maps
    for inside in (slice(0, length), slice(width - length, width)):
        outside = np.delete(maps[:, :, inside], np.arange(width)[inside], axis=-1)
        if not outside.any():
            return np.ascontiguousarray(maps[:, :, inside, inside])
    raise MeasureError(
        f"text {number + 1}: {length} tokens for maps of {width} positions, and no padding on either side",
        "Give one token for each position, or the tokens without the padding of the batch",
    )
