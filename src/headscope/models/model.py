"""A loaded model with its tokenizer and its attention sites, and the methods that stream its attention."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from headscope.core import html
from headscope.core.batch import WORD, Slope
from headscope.core.heads import HeadLayout, Site
from headscope.core.rows import RowRequest
from headscope.core.transfer import to_device
from headscope.corpora.tags import Tagging, tagging_of
from headscope.encoding.texts import Encoded
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import EncodingError, ModelError
from headscope.models import capture, fused
from headscope.models.loading.quantised import pieces, quantisation
from headscope.models.predictions import Objective
from headscope.models.sites import Capture

if TYPE_CHECKING:
    from jaxtyping import Int64, Shaped
    from transformers import PreTrainedModel

    from headscope.models.capture import Consumer, Exchange, Finite, ValueConsumer
    from headscope.models.fused import KeyFactors, Reaches, RowConsumer
    from headscope.models.gradients import Taker
    from headscope.models.memory import BackwardMemory
    from headscope.models.prune import Pruning


@dataclass(frozen=True)
class Model:
    """A pretrained Transformer whose attention can be measured."""

    name: str
    network: PreTrainedModel
    tokenizer: Tokenizer
    sites: tuple[Site, ...]
    capture: Capture
    whole: PreTrainedModel | None = None  # the network with its prediction head, if it was loaded with one
    objective: Objective | None = None
    pruning: Pruning | None = None  # which heads were cut out, if any
    origin: Mapping[str, str] = field(default_factory=dict)  # for signatures: the source of weights that are not those of a model folder

    def __repr__(self) -> str:
        """One line: name, architecture, layers and heads, type of the weights, device."""
        return f"Model({self.name!r}, {type(self.network).__name__}, {self.layout.spelled()}, {self.dtype}, {self.device})"

    def _repr_html_(self) -> str:
        """An HTML table for notebooks with the same facts, the number of parameters and the longest text."""
        size = sum(parameter.numel() for parameter in self.network.parameters())
        rows = {
            "architecture": f"{type(self.network).__name__}, {size / 1e6:.1f} million parameters",
            "attention": self.layout.spelled(),
            "longest text": f"{self.max_length:,} tokens" if self.max_length else "not limited by the model",
            "weights": f"{self.dtype} on {self.device}",
        }
        return html.card(self.name, inside=html.table(("", ""), rows.items(), (True, True)))

    @property
    def layout(self) -> HeadLayout:
        """The positions of each site's heads on the flat head axis of a state."""
        return HeadLayout(self.sites)

    @cached_property
    def fingerprint(self) -> str:
        """A hash that identifies the model: of its configuration, its tokenizer, and evenly spaced weights of every
        tensor together with the sum of all the tensor's bits, so that a change of a single weight changes the hash.

        It is computed from memory, so a model that was changed after loading has another fingerprint. The pooler is
        left out: it plays no part in attention, and a model that was loaded with its head lacks it. For a classifier,
        the weights that predict classes are included, because gradients depend on them.
        """
        classifier = self.whole if self.objective in ("classes", "tags") else None
        digest = hashlib.sha256(type(self.network).__name__.encode())
        config = self.network.config.to_dict()
        passing = ("_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures")
        digest.update(json.dumps({name: config[name] for name in sorted(config) if name not in passing}, default=str).encode())
        digest.update(self.tokenizer.hf.backend_tokenizer.to_str().encode())
        for name, tensor in (classifier or self.network).state_dict().items():
            if "pooler" in name and classifier is None:
                continue
            for flat in (piece.flatten() for piece in pieces(tensor)):
                digest.update(name.encode() + flat[:: max(1, flat.numel() // 4096)].double().cpu().numpy().tobytes())
                digest.update(str(_bits(flat)).encode())
        return digest.hexdigest()[:16]

    @property
    def dtype(self) -> str:
        """The type of the weights: `float32`, `float16` or `bfloat16`."""
        return str(next(self.network.parameters()).dtype).removeprefix("torch.")

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        device: torch.device = next(self.network.parameters()).device
        return device

    @cached_property
    def quantisation(self) -> str | None:
        """The quantisation of the weights in memory; None if they are plain floating-point numbers."""
        return quantisation(self.network)

    def require_plain_weights(self, purpose: str) -> None:
        """Raise an error if the model is quantised: `purpose` needs gradients or plain weights."""
        if self.quantisation is not None:
            raise ModelError(f"{self.name} is quantised ({self.quantisation}), which does not allow {purpose}", "Use the unquantised model")

    @property
    def encoder_decoder(self) -> bool:
        """Whether the model reads a source and a target."""
        return bool(self.network.config.is_encoder_decoder)

    @property
    def decoder_start(self) -> int | None:
        """The first token of an encoder-decoder's decoder; None for other models."""
        if not self.encoder_decoder:
            return None
        config = self.network.config
        names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
        return next((int(token) for name in names if (token := getattr(config, name, None)) is not None), 0)

    @property
    def max_length(self) -> int | None:
        """The largest number of tokens that the model's positions allow; None if there is no limit."""
        limit = getattr(self.network.config, "max_position_embeddings", None)
        if not isinstance(limit, int) or limit <= 0:
            return None
        # RoBERTa's family starts counting positions after the padding index.
        offset = getattr(getattr(self.network, "embeddings", None), "padding_idx", None)
        return limit if offset is None else limit - offset - 1

    @cached_property
    def _segments(self) -> bool:
        takes = "token_type_ids" in signature(self.network.forward).parameters
        return takes and (getattr(self.network.config, "type_vocab_size", 0) or 0) > 1

    @cached_property
    def _rows(self) -> int:
        """The number of token embeddings."""
        return int(self.network.get_input_embeddings().weight.shape[0])

    def inputs(self, texts: Sequence[Encoded]) -> dict[str, torch.Tensor]:
        """The network's inputs for a batch of texts: ids padded on the right, and attention masks."""
        pad = self.tokenizer.pad_id
        batch = {
            "input_ids": _pad([text.ids for text in texts], pad),
            "attention_mask": _real([text.ids for text in texts]),
        }
        if self._segments:
            batch["token_type_ids"] = _pad([text.segments for text in texts], 0)
        if self.encoder_decoder:
            targets = [text.target.ids for text in texts if text.target is not None]
            batch["decoder_input_ids"] = _pad(targets, pad)
            batch["decoder_attention_mask"] = _real(targets)
        for name in ("input_ids", "decoder_input_ids"):
            if name in batch:
                self.require_embeddings(int(batch[name].max()))
        return {name: to_device(tensor, self.device) for name, tensor in batch.items()}

    def require_embeddings(self, largest: int) -> None:
        """Raise an error if the model has no embedding for the id `largest`."""
        if largest >= self._rows:
            token = self.tokenizer.hf.convert_ids_to_tokens(largest)
            raise EncodingError(
                f"the tokenizer of {self.name} contains {token!r}, for which the model has no embedding", "Use the model's own tokenizer"
            )

    def stream(
        self,
        inputs: Mapping[str, torch.Tensor],
        consume: Consumer,
        wanted: frozenset[int] | None = None,
        values: ValueConsumer | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        """Run the model once and pass the maps of each wanted site to `consume`: its attention weights, or the maps
        that `exchange` makes of them. The values of a site, if known, are passed to `values` first. Maps that are not
        finite raise an error.
        """
        finite = self.finite()

        def take(index: int, weights: torch.Tensor, *seen: Any) -> None:
            finite.note(index, weights, self.queries(inputs, self.sites[index]))
            consume(index, weights, *seen)

        if self.capture == "interface":
            capture.stream(self.network, self.sites, inputs, take, wanted, values, exchange)
        else:
            outputs, _ = capture.from_outputs(self.network, inputs)
            for index, maps in enumerate(maps for group in outputs.values() for maps in group):
                if wanted is None or index in wanted:
                    take(index, maps, None, None)
        finite.check()

    @cached_property
    def needs_maps(self) -> str | None:
        """The reason why row statistics of this model cannot be computed without its maps; None if they can.

        It is determined on a dry run: the statistics without maps must equal those of the maps of eager attention.
        """
        from headscope.models.verify import refused_without_maps

        return "its maps are read from its outputs" if self.capture != "interface" else refused_without_maps(self.network, self.sites)

    def stream_rows(
        self,
        texts: Sequence[Encoded],
        requests: Callable[[int], RowRequest],
        consume: RowConsumer,
        wanted: frozenset[int] | None = None,
        reaches: Reaches | None = None,
        factors: KeyFactors | None = None,
    ) -> None:
        """Run the model once, without maps, and pass the row statistics of each wanted site to `consume`. With
        `factors`, weights are multiplied by a factor per key, and each row is scaled to sum to 1.

        `requests` returns what to compute of a site. `reaches` checks the masks, and the reader of the statistics
        checks that they are finite; neither makes the device wait here.
        """
        source = [len(text) for text in texts]
        target = [len(text if text.target is None else text.target) for text in texts]
        inputs = self.inputs(texts)
        if len({*source}) == 1 and not self.encoder_decoder:
            del inputs["attention_mask"]  # it hides nothing, and transformers would wait for the device to check that
        lengths = fused.lengths_of(source, target, self.sites, self.device)
        fused.stream_rows(self.network, self.sites, inputs, lengths, requests, consume, wanted, reaches, factors)

    def attending(self, by: Literal["eager", "sdpa"]) -> AbstractContextManager[None]:
        """Use this attention implementation within the context. Switching once instead of for every pass saves time."""
        return capture.implementation(self.network, by)

    def finite(self) -> Finite:
        """A collector that checks whether attention is finite."""
        return capture.Finite(self.sites, self.network.dtype)

    def queries(self, inputs: Mapping[str, torch.Tensor], site: Site) -> torch.Tensor:
        """A mask of the rows of a site's maps, [batch, query]: 1 for tokens, 0 for padding."""
        return inputs["decoder_attention_mask" if self.encoder_decoder and site.kind != "encoder" else "attention_mask"]

    @cached_property
    def classes(self) -> dict[str, int]:
        """The classes of a classifier (of texts or of words) by name, with their numbers; empty for other models."""
        if self.whole is None or self.objective not in ("classes", "tags"):
            return {}
        config = self.whole.config
        named = {str(name): int(number) for name, number in config.label2id.items()}
        return {**named, **{str(name): int(number) for number, name in config.id2label.items()}}

    @property
    def answers(self) -> int:
        """The number of classes, tags or tokens that the model chooses from."""
        return len(set(self.classes.values())) or self._rows

    @property
    def tagging(self) -> Tagging | None:
        """The kind of tagging that a tagger's tags express, or most likely do; None for other models."""
        return tagging_of(self.whole.config.id2label.values()) if self.whole is not None and self.objective == "tags" else None

    def predicts(self, text: Encoded) -> bool:
        """Whether a text contains anything for the model to predict."""
        if self.objective == "classes":
            return text.label is not None
        if self.objective == "tags":
            return any(tag is not None for tag in text.tags)
        read = text if text.target is None else text.target
        return WORD in text.roles if self.objective == "masked" else len(read) > 1

    @cached_property
    def backward_memory(self) -> BackwardMemory:
        """The estimated memory of backward passes, which also makes batches that stay within a bound."""
        from headscope.models.memory import BackwardMemory

        return BackwardMemory.of(self)

    def differentiate(self, texts: Sequence[Encoded], slope: Slope, key: str, take: Taker, wanted: frozenset[int]) -> None:
        """Run the model forwards and backwards and pass to `take` the values that `slope` computes from the gradients
        of each wanted site's attention.
        """
        from headscope.models.gradients import differentiate

        differentiate(self, texts, slope, key, take, wanted)


def _pad(rows: Sequence[np.ndarray], value: int) -> Int64[np.ndarray, "row position"]:
    lengths = np.array([len(row) for row in rows])
    batch = np.full((len(rows), int(lengths.max())), value, dtype=np.int64)
    batch[np.arange(batch.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return batch


def _real(rows: Sequence[np.ndarray]) -> Int64[np.ndarray, "row position"]:
    """A mask of padded rows: 1 for tokens, 0 for padding."""
    lengths = np.array([len(row) for row in rows])
    return (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)


def _bits(flat: Shaped[torch.Tensor, "n"]) -> int:
    """The sum of a tensor's elements, with their bits read as integers: the same on every device, and as fast as
    reading memory.
    """
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(flat.element_size(), torch.uint8)
    numbers = flat.contiguous().view(whole)
    return int(numbers.numpy().sum(dtype=np.int64)) if numbers.device.type == "cpu" else int(numbers.sum(dtype=torch.int64))
