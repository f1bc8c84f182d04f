"""Models as they are given to the Python interface: by name, in memory, or loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headscope.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from headscope.models.loading.in_memory import ModelInMemory
    from headscope.models.model import Model

    # A name, a loaded model, or a model of transformers, PEFT or sentence_transformers in memory (docs/models.md).
    GivenModel: TypeAlias = Model | ModelInMemory | str | Path | PreTrainedModel | tuple[PreTrainedModel, PreTrainedTokenizerBase] | Any


def load(
    model: GivenModel = "mini",
    tokenizer: PreTrainedTokenizerBase | str | Path | None = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    random: int | None = None,
    head: bool = False,
) -> Model:
    """A loaded model whose attention can be read. With `random`, a seed, all weights except the embeddings are redrawn;
    with `head`, the model can also predict, which `saliency` needs.

    `model` is a name: `mini` (embedded), a folder with a model, a PEFT adapter or a sentence_transformers model, a GGUF
    file, or a hub id. Or it is in memory: a transformers model with its `tokenizer`, a PeftModel with its tokenizer, a
    pipeline, or a SentenceTransformer. A model in memory is not changed, and its weights are shared, not copied.

    `device` is `cpu`, `cuda`, `cuda:1`, ..., or `auto` (by accelerate); without it a GPU is used if there is one.
    `dtype` is `float32` (the default), `float16` or `bfloat16`. A model in memory keeps its device and its data type.

    >>> import headscope as hs
    >>> model = hs.load("mini")
    >>> model.layout.size, model.max_length
    (144, 256)
    """
    if not isinstance(model, str | Path):
        if dtype is not None:
            raise ModelError("the data type of a model in memory cannot be changed here", f"Convert it first: model.to(torch.{dtype})")
        return loaded_model(given_model(model, tokenizer), device=device, head=head, random=random)
    if tokenizer is not None:
        raise ModelError(
            f"{model} has its own tokenizer, and a second one was given ({str(tokenizer)[:40]!r})",
            "Omit the tokenizer; give devices by name: device='cpu'",
        )
    from headscope.models.load import load as load_named

    return load_named(model, device, dtype or "float32", random, head)


def given_model(model: GivenModel, tokenizer: Any = None) -> Model | ModelInMemory | str:
    """A model as a run or a study takes it: a name, a loaded model or a model in memory; an error for anything else."""
    if isinstance(model, str | Path):
        return str(model)
    from headscope.models.loading.in_memory import ModelInMemory
    from headscope.models.model import Model

    if isinstance(model, Model | ModelInMemory):
        return model
    return ModelInMemory.of(model, tokenizer)


def loaded_model(model: GivenModel, *, device: str | None = None, head: bool = False, random: int | None = None) -> Model:
    """The model, loaded if it is not loaded yet."""
    from headscope.models.load import load as load_named
    from headscope.models.model import Model

    given = given_model(model)
    if isinstance(given, str):
        return load_named(given, device, random=random, head=head)
    if not isinstance(given, Model):
        return given.load(head, random, device)
    if random is not None or (head and given.whole is None):
        option = "random" if random is not None else "head"
        raise ModelError(f"{given.name} is loaded already, without {option}", f"Load it with {option}=")
    return given


def name_of(model: Model | ModelInMemory | str) -> str:
    """The name of a model in a specification."""
    return model if isinstance(model, str) else model.name
