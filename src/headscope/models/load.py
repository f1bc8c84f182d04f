"""Loading a model: an embedded one, a local folder, or a hub id that the user names. Safetensors only, no remote
code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi, try_to_load_from_cache
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import cached_file
from transformers.utils import logging as hf_logging

from headscope.core.paths import kind_of, problem_of
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import HeadscopeError, ModelError
from headscope.models import DEFAULT, EMBEDDED, MODEL_HELP
from headscope.models.dry_run import embedding_rows
from headscope.models.folder import (
    check_config,
    check_finite,
    check_folder,
    check_growth,
    check_layers,
    check_reads_text,
    check_size,
    read_json,
)
from headscope.models.model import Model
from headscope.models.objectives import objective_of, require_weights
from headscope.models.prune import cut_again, described, load_whole
from headscope.models.random import randomise
from headscope.models.sites import find_sites

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def load(
    name: str | Path = DEFAULT, device: str | None = None, dtype: str = "float32", random: int | None = None, head: bool = False
) -> Model:
    """The model called `name`: `mini` or `mini-decoder` (embedded), a folder, or a hub id, which may be downloaded
    because it was named.

    `device` is `cuda` if there is one and else `cpu`; attention is measured in float32 whatever `dtype` the weights
    have. With `random`, a seed, all weights but the embeddings are redrawn: the control that tells architecture from
    training. With `head` the model can predict, too, which gradients of its loss need: words or, if the checkpoint
    is a classifier, classes.
    """
    if dtype not in _DTYPES:
        raise ModelError(f"dtype {dtype!r} is unknown", f"Use one of {', '.join(_DTYPES)}")
    target = _device(device)
    source, local = _locate(str(name))
    options: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
    with quietly():
        try:
            if not local:
                options["local_files_only"] = _cached_or_reachable(source)
                check_config(source, read_json(Path(cached_file(source, "config.json", **options))))
            config = AutoConfig.from_pretrained(source, **options)
            kind, objective = objective_of(str(name), config) if head else (AutoModel, None)
            with torch.device("meta"):
                skeleton = kind.from_config(config)
            check_reads_text(str(name), skeleton)
            tokenizer = _tokenizer(str(name), source, options)
            said = described(source) if local else None
            if local:
                check_size(str(name), Path(source), skeleton)
            if said is not None:
                network, info = load_whole(skeleton, source, config, _DTYPES[dtype], said)
            else:
                # Where attention cannot be switched later, maps can be had only from a model that was loaded with eager
                # attention.
                attention = {} if skeleton._can_set_attn_implementation() else {"attn_implementation": "eager"}
                network, info = kind.from_pretrained(
                    source, config=config, dtype=_DTYPES[dtype], use_safetensors=True, output_loading_info=True, **attention, **options
                )
        except ModelError:
            raise
        except ImportError as error:
            raise ModelError(f"{name} needs a package that is not installed ({_first_line(error)})", "Install it with pip") from error
        except Exception as error:
            raise _explain(str(name), error) from error
    if len(tokenizer) * 10 < (getattr(config, "vocab_size", 0) or 0):
        # transformers builds an empty tokenizer where it finds no files, and says nothing.
        raise ModelError(
            f"the tokenizer of {name} has {len(tokenizer)} entries where the model has {config.vocab_size}",
            "Put the model's tokenizer.json beside its weights",
        )
    require_weights(str(name), network, objective, info)
    check_layers(str(name), network, info["unexpected_keys"])
    check_finite(str(name), network)
    _require_rows(str(name), tokenizer, network)
    if random is not None:
        randomise(network, random)
    network = network.to(target).eval().requires_grad_(False)
    body = network.base_model
    with quietly():
        sites, capture = find_sites(body)
    pruning = None if said is None else cut_again(body, sites, said)
    left = sites if pruning is None else pruning.left()
    return Model(str(name), body, Tokenizer(tokenizer), left, capture, network if head else None, objective, pruning)


def load_tokenizer(name: str | Path = DEFAULT) -> Tokenizer:
    """The tokenizer of a model, without its weights."""
    source, local = _locate(str(name))
    with quietly():
        try:
            local = local or _cached_or_reachable(source)
            return Tokenizer(_tokenizer(str(name), source, {"local_files_only": local, "trust_remote_code": False}))
        except HeadscopeError:
            raise
        except Exception as error:
            raise _explain(str(name), error) from error


def verify_embedded(model: str) -> None:
    """Compare the files of an embedded model with the checksums in its card."""
    folder = files("headscope.models") / model
    card = (folder / "README.md").read_text(encoding="utf-8")
    for expected, name in re.findall(r"^ {4}([0-9a-f]{64})  (\S+)$", card, re.MULTILINE):
        actual = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if actual != expected:
            raise ModelError(
                f"{name} of the embedded model {model} is not what it should be (sha256 {actual[:12]}...)", "Reinstall headscope"
            )


def _device(name: str | None) -> torch.device:
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {name!r} cannot be used ({_first_line(error)})", "Use cpu, or cuda on a machine that has it") from error
    return device


def _locate(name: str) -> tuple[str, bool]:
    """Where to load from, and whether only from this disk."""
    if name in EMBEDDED:
        return str(files("headscope.models") / name), True
    folder = Path(name).expanduser()
    if not name.strip():
        raise ModelError("the model has no name", f"Name {MODEL_HELP}, such as bert-base-uncased")
    if (kind := kind_of(folder)) == "unusable":
        problem, remedy = problem_of(folder, "folder") or ("", "")
        raise ModelError(f"{name[:200]}: {problem}", remedy)
    if kind == "folder":
        check_folder(folder)
        return str(folder), True
    if folder.suffix == ".gguf":
        raise ModelError(
            f"{name} is a GGUF file, made for other programs", "Use the original model: a folder with *.safetensors, or a hub id"
        )
    if kind != "missing" or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(
            f"{name} is not a folder",
            "Name a folder with config.json and *.safetensors, a hub id such as bert-base-uncased, mini or mini-decoder",
        )
    return name, False


def _cached_or_reachable(name: str) -> bool:
    """True if a hub model lies in the local cache; False if it must be fetched and the hub has it. Asked once,
    without retries.
    """
    if isinstance(try_to_load_from_cache(name, "config.json"), str):
        return True
    try:
        HfApi().model_info(name, timeout=10)
    except Exception as error:
        raise ModelError(
            f"{name} is neither a folder here, nor in the local cache, nor to be had from the hub ({type(error).__name__})",
            f"Name {MODEL_HELP}, such as bert-base-uncased",
        ) from None
    return False


def _tokenizer(name: str, source: str, options: dict[str, Any]) -> Any:
    """The tokenizer that lies beside a model's weights."""
    try:
        check_growth(name, _tokenizer_rules(source, options))
        return AutoTokenizer.from_pretrained(source, **options)
    except (ImportError, OSError, ModelError):
        raise
    except BaseException as error:  # where its own code panics, that is no Exception in Python
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if "trust_remote_code" in str(error):
            raise _explain(name, error) from error
        raise ModelError(
            f"the tokenizer of {name} cannot be read ({type(error).__name__}: {_first_line(error)})",
            "Put the model's own tokenizer.json and tokenizer_config.json beside its weights",
        ) from error


def _tokenizer_rules(source: str, options: dict[str, Any]) -> dict[str, Any]:
    """What is in a model's tokenizer.json; nothing if it has none, or none that can be read, which loading it will
    tell.
    """
    file = cached_file(source, "tokenizer.json", _raise_exceptions_for_missing_entries=False, **options)
    try:
        return {} if file is None else read_json(Path(file))
    except ModelError:
        return {}


def _require_rows(name: str, tokenizer: Any, network: Any) -> None:
    """Refuse the tokenizer of another model: one whose vocabulary is larger than the table of embeddings."""
    rows = embedding_rows(network)
    last = max(tokenizer.backend_tokenizer.get_vocab(with_added_tokens=False).values(), default=-1)
    if last >= rows:
        raise ModelError(
            f"the tokenizer of {name} has tokens up to number {last}, where the model has embeddings of {rows}",
            "Put the model's own tokenizer.json beside its weights",
        )


def _explain(name: str, error: BaseException) -> ModelError:
    text = str(error)
    if "trust_remote_code" in text or "custom code" in text:
        return ModelError(f"{name} wants to run code of its own, which headscope does not do", "Use a model that transformers knows")
    if "safetensors" in text and "does not appear" in text:
        return ModelError(f"{name} has no safetensors weights", "Pick a revision or model that does")
    if "ignore_mismatched_sizes" in text:
        return ModelError(f"{name} has weights of another shape than its config.json says", "Check that config.json belongs to the weights")
    if isinstance(error, OSError):
        return ModelError(
            f"{name} could not be loaded ({_first_line(error)})",
            f"Name {MODEL_HELP} that is cached or reachable",
        )
    return ModelError(f"{name} could not be loaded ({type(error).__name__}: {_first_line(error)})", "Check config.json and the weights")


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


@contextmanager
def quietly() -> Iterator[None]:
    """Without transformers' progress bars and load reports: what matters in them is checked here."""
    level, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity(hf_logging.CRITICAL)
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        hf_logging.set_verbosity(level)
        if bars:
            hf_logging.enable_progress_bar()
