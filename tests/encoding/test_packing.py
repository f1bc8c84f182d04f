"""Texts packed as bytes: unpacking restores them, and fields that are not read stay packed."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest

from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.packing import UnpackedText, pack, unpack
from headscope.encoding.texts import Encoded, Encoder, TokenArrays
from headscope.models.model import Model

LAZY = {"annotation", "pieces", "roles", "word_of"}


def encoded(model: Model, decoder_start: int | None = None) -> list[Encoded]:
    documents = list(read("sampler"))[:2]
    return list(Encoder(model.tokenizer, max_length=24, overlong="truncate", decoder_start=decoder_start).texts(documents, Tally()))


def same(one: Encoded, other: Encoded) -> None:
    for field in fields(Encoded):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if field.name == "target":
            assert (first is None) == (second is None)
            if first is not None:
                same(first, second)
        elif isinstance(second, np.ndarray):
            assert first.dtype == second.dtype
            assert first.tolist() == second.tolist()
        else:
            assert first == second, field.name
    for name in TokenArrays._fields:
        ours, theirs = getattr(one.arrays, name), getattr(other.arrays, name)
        assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist())
    assert (one.document, one.slice, one.cost, len(one)) == (other.document, other.slice, other.cost, len(other))


@pytest.mark.parametrize("decoder_start", [None, 1])
def test_packing_and_unpacking_restores_texts(small_model: Model, decoder_start: int | None) -> None:
    texts = encoded(small_model, decoder_start)
    texts[1] = replace(texts[1], label="spam", tags=("N", None), generated_from=3)
    assert (texts[0].target is None) == (decoder_start is None)
    for one, other in zip(unpack(pack(texts)), texts, strict=True):
        same(one, other)
    again = unpack(pack(unpack(pack(texts))))
    same(pickle.loads(pickle.dumps(again[1])), texts[1])
    changed = replace(again[1], id="x")
    assert (changed.id, changed.document, changed.pieces) == ("x", texts[1].document, texts[1].pieces)


def test_fields_that_are_not_read_stay_packed(small_model: Model) -> None:
    text = unpack(pack(encoded(small_model)))[0]
    assert isinstance(text, UnpackedText)
    _ = text.document, text.slice, text.cost, text.arrays, text.ids
    assert not LAZY & vars(text).keys()
    assert text.pieces
    assert LAZY & vars(text).keys() == {"pieces"}
    with pytest.raises(AttributeError, match="colour"):
        _ = text.colour


def test_arrays_of_unpacked_texts_are_writable(small_model: Model) -> None:
    """torch warns about arrays that are not writable."""
    text = unpack(pack(encoded(small_model)))[0]
    assert all(array.flags.writeable for array in (text.ids, text.segments, *text.arrays))


def test_a_process_that_encodes_imports_neither_torch_nor_transformers(small_model: Model) -> None:
    code = """if True:
        import pickle, sys
        from headscope.core.tally import Tally
        from headscope.corpora import read
        from headscope.encoding.packing import pack
        encoder = pickle.load(sys.stdin.buffer)
        texts = list(encoder.texts(list(read("sampler"))[:2], Tally()))
        sys.stdout.buffer.write(pack(texts))
        assert not {"torch", "transformers"} & sys.modules.keys(), "imported"
        assert encoder.tokenizer.hf.backend_tokenizer.to_str()  # it is still available on request
    """
    encoder = Encoder(small_model.tokenizer, max_length=24, overlong="truncate")
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(encoder), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    for one, other in zip(unpack(done.stdout), encoded(small_model), strict=True):
        same(one, other)
