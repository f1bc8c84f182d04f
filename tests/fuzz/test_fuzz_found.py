"""Faults that fuzzing found, each with a small input that caused it."""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fuzz_corpora import npz
from fuzz_engine import SECONDS, bounded_work
from fuzz_runs import given_maps, run_folder, tiny
from safetensors.numpy import save

import headscope as hs
from headscope.corpora import check, read
from headscope.corpora import files as corpus_files
from headscope.encoding.vectors import read_vectors
from headscope.engine.spec import make_spec, read_spec
from headscope.errors import CorpusError, HeadscopeError, MeasureError, RunError
from headscope.results.folder import read_states
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.runs.given_maps import read_maps
from headscope.views.run import run_data


def megabytes() -> float:
    """The peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("filling", [b"\x00", b"word ", b"1\tw\t_\t_\t_\t_\t0\troot\t_\t_\n\n"])
def test_a_decompression_bomb_is_refused_without_much_memory(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes], filling: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_files, "UNPACKED", 1 << 18)
    path = tmp_path / f"bomb.conllu{suffix}"
    path.write_bytes(compress(filling * (corpus_files.UNPACKED * 2 // len(filling))))
    assert path.stat().st_size < 200_000
    before = megabytes()
    with pytest.raises(CorpusError, match=r"unpacks to more than 300 times its size|columns where") as caught:
        for _ in read(path):
            pass
    assert str(path) in str(caught.value)
    assert megabytes() - before < 200


def test_a_line_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "LONGEST_LINE", 1000)
    (tmp_path / "long.jsonl").write_bytes(b'{"text": "a"}\n' + b" " * 1001)
    with pytest.raises(CorpusError, match=r"line 2 of .*long.jsonl: the line is longer than 1,000 bytes"):
        list(read(tmp_path / "long.jsonl"))
    (tmp_path / "long.jsonl").write_bytes(b'{"text": "a"}' + b" " * 986 + b"\n")
    assert len(list(read(tmp_path / "long.jsonl"))) == 1


def test_a_very_long_sentence_id_is_shortened_in_findings(tmp_path: Path) -> None:
    (tmp_path / "x.conllu").write_text(f"# sent_id = {'s' * 20_000}\n1\tw\t_\t_\t_\t_\t0\troot\t_\t_\n")
    assert all(len(str(finding)) < 1200 for finding in check([tmp_path / "x.conllu"]))


def test_a_begin_line_with_many_spaces_is_read_fast_and_names_the_document(tmp_path: Path) -> None:
    row = "d 0 0 w - - - - - - * -\n"
    (tmp_path / "x_conll").write_text(f"#begin document (d){' ' * 20_000}x\n{row}#end document\n")
    with bounded_work(SECONDS):
        assert len(list(read(tmp_path / "x_conll"))) == 1
    for line, id in (
        ("(a b); part 001", "a b/001"),
        ("bare ;part 2", "bare/2"),
        ("(a); part", "(a); part"),
        ("", "document"),
        ("()", "document"),
    ):
        (tmp_path / "x_conll").write_text(f"#begin document {line}\n{row}#end document\n")
        assert [document.id for document in read(tmp_path / "x_conll")] == [id]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("limit = " + "9" * 5000, "is not a TOML file"),
        ("corpus = " + "[" * 5000, "is not a TOML file"),
        ("own = 5", "code to run"),
        ('preset = "' + "x" * 20_000 + '"', "preset = 'xxx"),
    ],
)
def test_an_invalid_specification_is_refused_with_a_short_message(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(text)
    with pytest.raises(RunError, match=says) as caught:
        make_spec(read_spec(path), str(path))
    assert len(str(caught.value)) < 2000


def test_word_vectors_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    text, arrays = tmp_path / "v.txt", tmp_path / "v.npz"
    text.write_text("cat 1e39\n")
    with pytest.raises(CorpusError, match=r"line 1 of .*v.txt: a number is not finite"):
        read_vectors(text, {"cat"})
    for value in (np.nan, 1e300):
        arrays.write_bytes(npz(words=np.array(["cat"]), vectors=np.full((1, 2), value)))
        with pytest.raises(CorpusError, match=r"v.npz: a number is not finite"):
            read_vectors(arrays, {"cat"})


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


def test_objects_in_arrays_are_never_unpickled(tmp_path: Path) -> None:
    canary, path = tmp_path / "it ran", tmp_path / "maps.npz"
    evil = np.array([Canary(canary)] * 3, dtype=object)
    for arrays in ({**given_maps(), "tokens": evil}, {"attention": evil, "tokens": evil}, {"words": evil, "vectors": evil}):
        path.write_bytes(npz(**arrays))
        with pytest.raises(MeasureError, match="without objects"):
            read_maps(path)
        with pytest.raises(CorpusError, match=r"not an npz of plain arrays|no array"):
            read_vectors(path, {"cat"})
    path.write_bytes(pickle.dumps(Canary(canary)))  # a pickle with the suffix .npz
    with pytest.raises(MeasureError):
        read_maps(path)
    assert not canary.exists()


def test_arrays_that_would_unpack_to_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "maps.npz"
    np.savez_compressed(path, attention=np.zeros((8, 8, 256, 256), np.float32), tokens=np.array(["a"] * 256))
    monkeypatch.setattr(corpus_files, "_ARRAYS", 1 << 20)
    for reader in (read_maps, lambda path: read_vectors(path, {"a"})):
        with pytest.raises(CorpusError, match="would unpack to 16,7"):
            reader(path)


@pytest.mark.parametrize("tokens", ["5", "null", '{"a": 1}'])
def test_maps_whose_tokens_are_not_a_list_are_refused(tmp_path: Path, tokens: str) -> None:
    path = tmp_path / "maps.safetensors"
    path.write_bytes(save({"attention": given_maps()["attention"]}, metadata={"tokens": tokens}))
    with pytest.raises(MeasureError, match="`tokens` is not a valid list"):
        read_maps(path)


def test_states_with_invalid_metadata_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "states.safetensors"
    for merges in ("[]", '{"tokens": {"n": "sum"}}', '{"tokens": 5}', "[" * 5000):
        path.write_bytes(save({"tokens/n": np.zeros(3, np.float32)}, metadata={"merges": merges}))
        with pytest.raises(RunError, match=r"states.safetensors is damaged"):
            read_states(path)


def test_first_of_an_empty_table_is_empty() -> None:
    assert len(Table(pa.table({"a": pa.array([], pa.string())})).first("a")) == 0


def test_a_table_with_lists_cannot_be_written_as_csv() -> None:
    with pytest.raises(RunError, match="cannot be written as csv"):
        Table(pa.table({"a": [[1, 2]]})).to_text("csv")


@pytest.mark.parametrize(
    "change",
    [
        {"identity": 5},
        {"dropped": "x"},
        {"study": []},
        {"settings": {"model": 5, "corpus": 7}},
        {"readings": [None, None]},
        {"counts": {"texts": [1]}},
        {"sites": [{"kind": "encoder", "layer": -(10**9), "heads": 4, "kv_heads": "x"}]},
        {"sites": [{"kind": "encoder", "layer": 1, "heads": 10**10, "kv_heads": 4}]},
        {"measures": {"no such": 5}},
    ],
)
def test_an_invalid_manifest_raises_only_errors_that_name_its_run(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "run"
    shutil.copytree(run_folder(), path)
    manifest = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**manifest, **change}))
    errors = []
    for look in (lambda: hs.open_run(path).report(tmp_path / "page.html"), lambda: run_data(Results.open(path))):
        try:
            look()
        except HeadscopeError as error:
            errors.append(str(error))
    assert errors or "counts" in change  # counts are only shown
    assert all(str(path) in error for error in errors)


def test_results_without_a_folder_raise_the_original_error() -> None:
    with pytest.raises(TypeError):
        run_data(Results({"counts": {}, "settings": 5, "sites": [], "signature": ""}, {}))


def test_view_refuses_empty_and_invalid_texts_but_shows_control_characters() -> None:
    with pytest.raises(HeadscopeError, match="no text"):
        hs.view(tiny(), "\u2028 \u00a0")
    with pytest.raises(HeadscopeError, match="Remove lone surrogates"):
        hs.view(tiny(), "\ud800")
    assert hs.view(tiny(), "a\x00b \u202e").grids()
