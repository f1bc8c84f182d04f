"""A loaded model together with its tokenizer, its sites, and the one way to stream its attention."""

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
    """A pretrained Transformer, ready to be looked at."""

    name: str
    network: PreTrainedModel
    tokenizer: Tokenizer
    sites: tuple[Site, ...]
    capture: Capture
    whole: PreTrainedModel | None = None  # `network` with what it predicts with, if it was loaded so
    objective: Objective | None = None
    pruning: Pruning | None = None  # which heads were cut out, if some were
    origin: Mapping[str, str] = field(default_factory=dict)  # what a signature says of weights that are not a folder's own

    def __repr__(self) -> str:
        """One line: name, architecture, layers and heads, type of the weights, device."""
        return f"Model({self.name!r}, {type(self.network).__name__}, {self.layout.spelled()}, {self.dtype}, {self.device})"

    def _repr_html_(self) -> str:
        """The same and a little more as a table, for a notebook."""
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
        """Where each site's heads lie on the flat axis of a state."""
        return HeadLayout(self.sites)

    @cached_property
    def fingerprint(self) -> str:
        """What tells one model from another: a hash of its configuration, its tokenizer, and evenly spaced weights of
        every tensor, with the sum of all its bits, so that a single weight makes a difference.

        It is taken from what is in memory, so that a model changed after loading is another model. A pooler, which
        plays no part in attention, and which a model loaded with its head lacks, does not count. What a classifier
        finds classes with does: gradients depend on it.
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
        """Where the weights are."""
        device: torch.device = next(self.network.parameters()).device
        return device

    @cached_property
    def quantisation(self) -> str | None:
        """How the weights that the model computes with are quantised; None if they are plain numbers."""
        return quantisation(self.network)

    def require_plain_weights(self, purpose: str) -> None:
        """Refuse a quantised model for what needs gradients, or the numbers of its weights."""
        if self.quantisation is not None:
            raise ModelError(f"{self.name} is quantised ({self.quantisation}), which does not allow {purpose}", "Use the whole model")

    @property
    def encoder_decoder(self) -> bool:
        """Whether the model reads a source and a target."""
        return bool(self.network.config.is_encoder_decoder)

    @property
    def decoder_start(self) -> int | None:
        """The token an encoder-decoder's decoder begins with; None for other models."""
        if not self.encoder_decoder:
            return None
        config = self.network.config
        names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
        return next((int(token) for name in names if (token := getattr(config, name, None)) is not None), 0)

    @property
    def max_length(self) -> int | None:
        """The longest input the model's positions allow; None if nothing limits it."""
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
        """Of how many tokens there are embeddings."""
        return int(self.network.get_input_embeddings().weight.shape[0])

    def inputs(self, texts: Sequence[Encoded]) -> dict[str, torch.Tensor]:
        """Padded tensors for the network: right padding, and a mask that says so."""
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
        """Refuse ids up to `largest` if the model has no embedding of it."""
        if largest >= self._rows:
            token = self.tokenizer.hf.convert_ids_to_tokens(largest)
            raise EncodingError(
                f"the tokenizer of {self.name} knows {token!r}, of which the model has no embedding", "Use the model's own tokenizer"
            )

    def stream(
        self,
        inputs: Mapping[str, torch.Tensor],
        consume: Consumer,
        wanted: frozenset[int] | None = None,
        values: ValueConsumer | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        """Run the model once and give `consume` each wanted site's attention, or the maps that `exchange` makes of it,
        and `values` its values before that where they are known; an error if maps are not finite.
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
        """The reason why this model gives no statistics of rows without its maps; None if it does.

        Tried on a dry run: they must be those of the maps that eager attention gives.
        """
        from headscope.models.verify import refused_without_maps

        return "its maps are read from its outputs" if self.capture != "interface" else refused_without_maps(self.network, self.sites)

    def stream_rows(
        self,
        texts: Sequence[Encoded],
        members: Callable[[int], torch.Tensor],
        offsets: Sequence[int],
        consume: RowConsumer,
        wanted: frozenset[int] | None = None,
        reaches: Reaches | None = None,
        factors: KeyFactors | None = None,
    ) -> None:
        """Run the model once, without maps, and give `consume` the statistics of each wanted site's rows; with
        `factors`, of rows whose weights are multiplied by a factor per key and scaled to sum to 1.

        `members` gives for a site which key belongs to which group. Whether masks are those of their reaches is checked
        by `reaches`, and whether all is finite by whoever reads the statistics: neither makes the device wait here.
        """
        source = [len(text) for text in texts]
        target = [len(text if text.target is None else text.target) for text in texts]
        inputs = self.inputs(texts)
        if len({*source}) == 1 and not self.encoder_decoder:
            del inputs["attention_mask"]  # it hides nothing, and transformers would wait for the device to find that out
        lengths = fused.lengths_of(source, target, self.sites, self.device)
        fused.stream_rows(self.network, self.sites, inputs, lengths, members, offsets, consume, wanted, reaches, factors)

    def attending(self, by: Literal["eager", "sdpa"]) -> AbstractContextManager[None]:
        """The network with this implementation of attention. To switch once, not for every pass, saves time."""
        return capture.implementation(self.network, by)

    def finite(self) -> Finite:
        """What remembers whether attention is finite."""
        return capture.Finite(self.sites, self.network.dtype)

    def queries(self, inputs: Mapping[str, torch.Tensor], site: Site) -> torch.Tensor:
        """1 at the rows of a site's maps that are tokens, 0 at padding, [batch, query]."""
        return inputs["decoder_attention_mask" if self.encoder_decoder and site.kind != "encoder" else "attention_mask"]

    @cached_property
    def classes(self) -> dict[str, int]:
        """The names of the classes that a classifier, of texts or of words, tells apart, and their numbers; none for
        other models.
        """
        if self.whole is None or self.objective not in ("classes", "tags"):
            return {}
        config = self.whole.config
        named = {str(name): int(number) for name, number in config.label2id.items()}
        return {**named, **{str(name): int(number) for number, name in config.id2label.items()}}

    @property
    def answers(self) -> int:
        """Among how many classes, tags or tokens the model chooses."""
        return len(set(self.classes.values())) or self._rows

    @property
    def tagging(self) -> Tagging | None:
        """What the tags of a model that tags words say, or most likely do; None for other models."""
        return tagging_of(self.whole.config.id2label.values()) if self.whole is not None and self.objective == "tags" else None

    def predicts(self, text: Encoded) -> bool:
        """Whether there is anything in a text for the model to predict."""
        if self.objective == "classes":
            return text.label is not None
        if self.objective == "tags":
            return any(tag is not None for tag in text.tags)
        read = text if text.target is None else text.target
        return WORD in text.roles if self.objective == "masked" else len(read) > 1

    @cached_property
    def backward_memory(self) -> BackwardMemory:
        """The bytes that a backward pass holds, and the batches that stay within a bound."""
        from headscope.models.memory import BackwardMemory

        return BackwardMemory.of(self)

    def differentiate(self, texts: Sequence[Encoded], slope: Slope, key: str, take: Taker, wanted: frozenset[int]) -> None:
        """Run the model forwards and backwards and give `take` what is made of the gradients of each wanted site's
        attention.
        """
        from headscope.models.gradients import differentiate

        differentiate(self, texts, slope, key, take, wanted)


def _pad(rows: Sequence[np.ndarray], value: int) -> Int64[np.ndarray, "row position"]:
    lengths = np.array([len(row) for row in rows])
    batch = np.full((len(rows), int(lengths.max())), value, dtype=np.int64)
    batch[np.arange(batch.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return batch


def _real(rows: Sequence[np.ndarray]) -> Int64[np.ndarray, "row position"]:
    """1 where a padded row holds a token, 0 on padding."""
    lengths = np.array([len(row) for row in rows])
    return (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)


def _bits(flat: Shaped[torch.Tensor, "n"]) -> int:
    """The sum of a tensor's bits, read as whole numbers of its width: the same on every device, and as fast as
    memory.
    """
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(flat.element_size(), torch.uint8)
    numbers = flat.contiguous().view(whole)
    return int(numbers.numpy().sum(dtype=np.int64)) if numbers.device.type == "cpu" else int(numbers.sum(dtype=torch.int64))
