"""GGUF files: transformers unpacks their weights into plain numbers; the name of their stored type is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headscope.errors import ModelError
from headscope.models.loading.quiet import first_line

if TYPE_CHECKING:
    from transformers import PretrainedConfig


class GgufFile(NamedTuple):
    """Facts from the header of a GGUF file."""

    quantisation: str  # the type that most weights are stored as: Q4_1, Q8_0, F16
    numbers: int  # the number of weights


def read_header(path: Path) -> GgufFile:
    """The header of a GGUF file; an error if the packages to read one are missing, or if it is damaged."""
    if missing := [package for package in ("gguf", "accelerate") if find_spec(package) is None]:
        raise ModelError(f"{path} is a GGUF file, and {missing[0]} is needed to read it", "pip install 'headscope[gguf]'")
    from gguf import GGMLQuantizationType
    from transformers.integrations.gguf.reader import GgufHeader

    types: Counter[str] = Counter()
    try:
        for tensor in GgufHeader.from_file(str(path)).tensors:
            types[GGMLQuantizationType(tensor.ggml_type).name] += prod(tensor.shape)
    except Exception as error:
        raise ModelError(
            f"{path} is not a valid GGUF file ({type(error).__name__}: {first_line(error)})", "Copy or download it again"
        ) from None
    if not types:
        raise ModelError(f"{path} is a GGUF file without weights", "Copy or download it again")
    return GgufFile(types.most_common(1)[0][0], sum(types.values()))


def complete_config(config: PretrainedConfig) -> None:
    """Add the class with a head, which the file does not name. Models in GGUF files are usually language models."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    name = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config.model_type)
    if not config.architectures and name is not None:
        config.architectures = [name]


def unpacking() -> dict[str, Any]:
    """The option of transformers that unpacks all weights, whichever kernels are installed."""
    from transformers.utils.quantization_config import GgufConfig

    return {"quantization_config": GgufConfig(dequantize=True)}


@contextmanager
def without_progress_bar() -> Iterator[None]:
    """Hide the progress bar of unpacking, which transformers shows even if its progress bars are switched off."""
    from transformers import modeling_gguf_pytorch_utils as module

    bar = module.tqdm
    module.tqdm = lambda tensors, **_: tensors
    try:
        yield
    finally:
        module.tqdm = bar
