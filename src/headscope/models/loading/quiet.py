"""Silence while transformers loads a model, and one-line errors for other packages."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as hf_logging

from headscope.errors import ModelError

_ONE_AT_A_TIME = threading.RLock()
_OTHERS = ("peft", "accelerate", "gguf", "sentence_transformers")


@contextmanager
def quietly() -> Iterator[None]:
    """Silence transformers' progress bars and load reports within the context; headscope checks what matters in them.
    Only one thread at a time may enter, because these settings, and those that transformers changes while it loads, are
    global. Two simultaneous loads left it unable to tie weights.
    """
    with _ONE_AT_A_TIME, _silence():
        yield


@contextmanager
def _silence() -> Iterator[None]:
    level, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    others = [(logger, logger.level) for logger in map(logging.getLogger, _OTHERS)]
    hf_logging.set_verbosity(hf_logging.CRITICAL)
    hf_logging.disable_progress_bar()
    for logger, _ in others:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        hf_logging.set_verbosity(level)
        if bars:
            hf_logging.enable_progress_bar()
        for logger, before in others:
            logger.setLevel(before)


def first_line(error: BaseException) -> str:
    """The first line of an error's message, with the next one if it ends with a colon; the error's type if it has no
    message.
    """
    lines = (str(error).strip() or type(error).__name__).splitlines()
    return " ".join(line.strip() for line in lines[: 2 if lines[0].endswith(":") else 1])[:200]


def explain(name: str, error: BaseException) -> ModelError:
    """The ModelError for an error of transformers or another package: one line about the model, with a remedy."""
    text = str(error)
    if isinstance(error, ImportError):
        return ModelError(f"{name} needs a package that is not installed ({first_line(error)})", "Install it with pip")
    if "trust_remote_code" in text or "custom code" in text:
        return ModelError(f"{name} needs custom code, which headscope does not run", "Use a model that transformers knows")
    if "safetensors" in text and "does not appear" in text:
        return ModelError(f"{name} has no safetensors weights", "Pick a revision or model that does")
    if "ignore_mismatched_sizes" in text:
        return ModelError(f"{name} has weights of another shape than its config.json says", "Check that config.json belongs to the weights")
    if isinstance(error, OSError):
        return ModelError(
            f"{name} could not be loaded ({first_line(error)})",
            "Name mini, a local folder, or a hub id that is cached or reachable",
        )
    return ModelError(f"{name} could not be loaded ({type(error).__name__}: {first_line(error)})", "Check config.json and the weights")
