"""Arrays of the host as tensors of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch
    from jaxtyping import Shaped


def to_device(array: Shaped[np.ndarray, "*shape"], device: torch.device) -> Shaped[torch.Tensor, "*shape"]:
    """The array as a tensor on a device. A copy to a GPU goes through pinned memory, so that neither the host nor the
    device waits for the other.
    """
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
