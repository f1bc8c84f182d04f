"""The tokenizer of a model: read from the files beside the weights, and checked against the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import AutoTokenizer
from transformers.utils import cached_file

from headscope.errors import ModelError
from headscope.models.dry_run import embedding_rows
from headscope.models.folder import check_growth, read_json
from headscope.models.loading.quiet import explain, first_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def read_tokenizer(name: str, source: str, options: dict[str, Any]) -> PreTrainedTokenizerBase:
    """The tokenizer beside a model's weights, or in its GGUF file; `options` are those of transformers."""
    try:
        if "gguf_file" not in options:
            check_growth(name, _tokenizer_rules(source, options))
        return AutoTokenizer.from_pretrained(source, **options)
    except (ImportError, OSError, ModelError):
        raise
    except BaseException as error:  # a panic of the tokenizers library is not an Exception in Python
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if "trust_remote_code" in str(error):
            raise explain(name, error) from error
        raise ModelError(
            f"the tokenizer of {name} cannot be read ({type(error).__name__}: {first_line(error)})",
            "Put the model's own tokenizer.json and tokenizer_config.json beside its weights",
        ) from error


def _tokenizer_rules(source: str, options: dict[str, Any]) -> dict[str, Any]:
    """The content of a model's tokenizer.json; empty if there is none, or if it cannot be read, which raises an error
    when the tokenizer is loaded.
    """
    file = cached_file(source, "tokenizer.json", _raise_exceptions_for_missing_entries=False, **options)
    try:
        return {} if file is None else read_json(Path(file))
    except ModelError:
        return {}


def check_tokenizer(name: str, tokenizer: Any, network: PreTrainedModel, remedy: str) -> None:
    """Refuse an empty tokenizer, and that of another model, which has more tokens than the model has embeddings."""
    size = getattr(network.config, "vocab_size", 0) or 0
    if len(tokenizer) * 10 < size:
        # If transformers finds no files, it silently builds an empty tokenizer.
        raise ModelError(f"the tokenizer of {name} has {len(tokenizer)} entries, but the model has {size}", remedy)
    if not getattr(tokenizer, "is_fast", False):
        return  # slow tokenizers are refused, with a reason, where they are used
    rows = embedding_rows(network)
    last = max(tokenizer.backend_tokenizer.get_vocab(with_added_tokens=False).values(), default=-1)
    if last >= rows:
        raise ModelError(f"the tokenizer of {name} has token ids up to {last}, but the model has {rows} embeddings", remedy)
