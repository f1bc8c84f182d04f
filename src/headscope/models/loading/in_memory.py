"""Models that are already in memory: of transformers, PEFT or sentence_transformers, or in a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headscope.core.paths import kind_of
from headscope.errors import ModelError
from headscope.models.folder import check_reads_text
from headscope.models.loading.adapter import merge_adapters, origin_of_adapters, tuner_layers
from headscope.models.loading.assemble import assemble, check_network, redraw
from headscope.models.loading.quantised import quantisation
from headscope.models.loading.quiet import explain, quietly
from headscope.models.loading.shared_copy import shared_copy
from headscope.models.loading.tokenizers import read_tokenizer
from headscope.models.model import Model
from headscope.models.objectives import objective_of
from headscope.models.predictions import Objective

ACCEPTED = (
    "Give mini, a folder, a hub id or a GGUF file; or, in memory, a transformers model with its tokenizer, as in (model, tokenizer), "
    "a PeftModel with its tokenizer, a pipeline or a SentenceTransformer"
)
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True)
class ModelInMemory:
    """A network and its tokenizer as given. Neither is ever changed: `load` returns a copy that shares the weights."""

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str  # where the network was loaded from, or else its class
    origin: Mapping[str, str]

    @classmethod
    def of(cls, given: object, tokenizer: object = None) -> Self:
        """The model in `given`, which may be of any accepted type; for other types, an error that names the type."""
        if isinstance(given, tuple | list):
            if len(given) != 2 or tokenizer is not None:
                raise ModelError(f"a {type(given).__name__} of {len(given)} elements is not a model", ACCEPTED)
            given, tokenizer = given
        network, beside = _parts(given)
        origin = {"object": type(given).__name__, **origin_of_adapters(network)}
        if _is_a(network, "peft", "PeftModel"):
            network = network.get_base_model()
        if not isinstance(network, PreTrainedModel):
            raise ModelError(f"{_kind(given)} is not a model that headscope can read", ACCEPTED)
        name = str(network.name_or_path or type(network).__name__)
        return cls(network, _tokenizer(network, name, beside if tokenizer is None else tokenizer), name, origin)

    def load(self, head: bool = False, random: int | None = None, device: str | None = None) -> Model:
        """The model, ready to be measured; with its prediction head if `head`, with redrawn weights if `random` is a
        seed.
        """
        self._require_device(device)
        objective = self._objective() if head else None
        check_reads_text(self.name, self.network)
        adapted = list(tuner_layers(self.network).values())
        if adapted and (kind := quantisation(self.network)) is not None:
            raise ModelError(
                f"{self.name} has an adapter on quantised weights ({kind}), which merging would round again",
                "Load the base model without quantisation",
            )
        with quietly():
            network = shared_copy(self.name, self.network, adapted)
            if adapted:
                merge_adapters(self.name, network)
            check_network(self.name, network, self.tokenizer, "Give the model's own tokenizer: (model, tokenizer)")
            if random is not None:
                network = deepcopy(network)
                redraw(self.name, network, random)
        return assemble(self.name, network, deepcopy(self.tokenizer), objective, self.origin)

    def _objective(self) -> Objective:
        """What the network predicts, by its class."""
        kind = type(self.network).__name__
        if kind.endswith("ForPreTraining"):
            raise ModelError(f"{kind} predicts several things at once", f"Load it as {kind.removesuffix('ForPreTraining')}ForMaskedLM")
        return objective_of(self.name, self.network.config, kind)[1]

    def _require_device(self, device: str | None) -> None:
        here = next(self.network.parameters()).device
        if device not in (None, "auto") and torch.device(device).type != here.type:
            raise ModelError(f"{self.name} is in memory on {here}, not on {device}", f"Move it first: model.to({device!r})")


def _parts(given: Any) -> tuple[Any, Any]:
    """The network and the tokenizer of a pipeline or of a sentence_transformers model; for other types, `given` and
    None.
    """
    if _is_a(given, "transformers", "Pipeline"):
        return given.model, given.tokenizer
    if _is_a(given, "sentence_transformers", "SentenceTransformer"):
        return given.transformers_model, given.tokenizer
    if _is_a(given, "sentence_transformers", "CrossEncoder"):
        return given.model, given.tokenizer
    return given, None


def _is_a(given: object, package: str, name: str) -> bool:
    """Whether an object has a class of this package and name, or one derived from it. The package need not be
    installed.
    """
    return any(kind.__name__ == name and kind.__module__.partition(".")[0] == package for kind in type(given).__mro__)


def _kind(given: object) -> str:
    kind = type(given)
    return kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__.partition('.')[0]} {kind.__name__}"


def _tokenizer(network: PreTrainedModel, name: str, given: Any) -> PreTrainedTokenizerBase:
    """The given tokenizer, or the one in the given folder; if none is given, the one in the folder that the network was
    loaded from.
    """
    if isinstance(given, PreTrainedTokenizerBase):
        return given
    if given is not None and not isinstance(given, str | Path):
        raise ModelError(
            f"{_kind(given)} is not a tokenizer of {type(network).__name__}",
            "Give the model's tokenizer: AutoTokenizer.from_pretrained(...)",
        )
    folder = Path(str(given or name)).expanduser()
    if kind_of(folder) == "folder" and any((folder / file).is_file() for file in _TOKENIZER_FILES):
        with quietly():
            try:
                return read_tokenizer(str(folder), str(folder), {"local_files_only": True, "trust_remote_code": False})
            except ModelError:
                raise
            except Exception as error:
                raise explain(str(folder), error) from error
    if given is not None:
        raise ModelError(f"{str(given)[:200]} is not a folder with a tokenizer", "Give the tokenizer itself: (model, tokenizer)")
    raise ModelError(
        f"{type(network).__name__} is given without its tokenizer, and {name!r} is not a local folder that has one",
        "Give both: hs.load(model, tokenizer), or (model, tokenizer) wherever a model is expected",
    )
