"""Loading a model by its name: an embedded one, a folder, an adapter, a GGUF file, or a hub id that the user names. No
pickles, no remote code.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import torch

from headscope.core.suggest import choose_from
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import HeadscopeError, ModelError, RunError
from headscope.models import DEFAULT
from headscope.models.loading.assemble import DTYPES, assemble, check_network, redraw
from headscope.models.loading.checkpoint import continues_texts, read_checkpoint, tokenizer_at
from headscope.models.loading.in_memory import ModelInMemory
from headscope.models.loading.locate import locate
from headscope.models.loading.quantised import quantisation
from headscope.models.loading.quiet import explain, first_line, quietly
from headscope.models.model import Model

__all__ = ["AUTO", "DEFAULT", "load", "load_given", "load_to_continue", "load_tokenizer", "quietly", "verify_embedded"]

AUTO = "auto"  # a device name: accelerate distributes the model over the available devices


def load(
    name: str | Path = DEFAULT, device: str | None = None, dtype: str = "float32", random: int | None = None, head: bool = False
) -> Model:
    """Load the model called `name`: `mini` or `mini-decoder` (embedded), a folder with a model or an adapter, a GGUF
    file, or a hub id. A hub model may be downloaded, because the user named it.

    `device` defaults to `cuda` if available, otherwise to `cpu`; with `auto`, accelerate chooses. Attention is measured
    in float32 whatever `dtype` the weights have. With `random`, a seed, all weights except the embeddings are redrawn:
    the control that separates the effect of the architecture from that of training. With `head`, the model is loaded
    with its prediction head, which gradients of its loss need. It then predicts words or, if the checkpoint is a
    classifier, classes.
    """
    if dtype not in DTYPES:
        raise ModelError(f"dtype {dtype!r} is unknown", choose_from(dtype, DTYPES))
    target = _device(device)
    with quietly():
        try:
            checkpoint = read_checkpoint(str(name), locate(str(name)), DTYPES[dtype], head, None if device == AUTO else target)
        except ModelError:
            raise
        except Exception as error:
            raise explain(str(name), error) from error
    network = checkpoint.network
    check_network(str(name), network, checkpoint.tokenizer, "Put the model's tokenizer.json beside its weights")
    redraw(str(name), network, random)
    if device != AUTO and quantisation(network) is None:
        network = network.to(target)
    network = network.eval().requires_grad_(False)
    return assemble(str(name), network, checkpoint.tokenizer, checkpoint.objective, checkpoint.origin, checkpoint.pruned)


def load_to_continue(name: str) -> Model:
    """Load the model called `name`, with its prediction head if it is a decoder that has one."""
    with suppress(Exception), quietly():  # loading reports what is wrong with a checkpoint
        if continues_texts(name, locate(name)):
            return load(name, head=True)
    return load(name)


def load_given(
    model: Model | ModelInMemory | None,
    name: str,
    device: str | None = None,
    dtype: str = "float32",
    random: int | None = None,
    head: bool = False,
) -> Model:
    """The model of a run or a study: `model` if it is given, loaded or in memory, otherwise the model called `name`."""
    if model is None:
        return load(name, device, dtype, random, head)
    if isinstance(model, ModelInMemory):
        return model.load(head, random, device)
    if random is not None:
        raise RunError("the weights of a loaded model cannot be redrawn", "Load it with random=, a seed, or give its name")
    return model


def load_tokenizer(name: str | Path = DEFAULT) -> Tokenizer:
    """The tokenizer of a model, without its weights."""
    source = locate(str(name))
    with quietly():
        try:
            return Tokenizer(tokenizer_at(str(name), source, source.options()))
        except HeadscopeError:
            raise
        except Exception as error:
            raise explain(str(name), error) from error


def verify_embedded(model: str) -> None:
    """Compare the files of an embedded model with the checksums in its card."""
    folder = files("headscope.models") / model
    card = (folder / "README.md").read_text(encoding="utf-8")
    for expected, name in re.findall(r"^ {4}([0-9a-f]{64})  (\S+)$", card, re.MULTILINE):
        actual = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if actual != expected:
            raise ModelError(f"{name} of the embedded model {model} is damaged (sha256 {actual[:12]}...)", "Reinstall headscope")


def _device(name: str | None) -> torch.device:
    if name == AUTO and find_spec("accelerate") is None:
        raise ModelError("device auto needs accelerate, which is not installed", "pip install 'headscope[accelerate]', or use cpu or cuda")
    try:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu") if name in (None, AUTO) else torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {name!r} cannot be used ({first_line(error)})", "Use cpu, or cuda on a machine that has it") from error
    return device
