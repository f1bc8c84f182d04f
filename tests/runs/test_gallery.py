"""The gallery of a run: found by the run itself, the same however the work is cut up, and what it shows is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon

import headscope as hs
from headscope.core.document import Document, Sentence, Word
from headscope.core.heads import HeadId, HeadLayout, Site
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.texts import Encoder
from headscope.engine import compute as shard
from headscope.engine import engines, sample
from headscope.engine.spec import make_spec
from headscope.errors import RunError
from headscope.gallery import attach as hang
from headscope.gallery.texts import look
from headscope.models.model import Model
from headscope.results.behaviour import behaviours, surely
from headscope.results.gallery import Example, Gallery
from headscope.results.table import Table
from headscope.runs import execute
from helpers.architectures import build
from helpers.families import FAMILIES
from helpers.stopping import stopped

MEASURES: dict[str, dict[str, Any]] = {"positions": {}, "tokens": {}, "entropy": {}, "relations": {}, "coreference": {"least": 5}}
DOCUMENTS = list(read("sampler"))[:5]
Map = NDArray[np.float64]


@pytest.fixture(scope="module")
def done(mini: Model, tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    out = tmp_path_factory.mktemp("runs") / "run"
    return hs.run(mini, Corpus.of(DOCUMENTS), MEASURES, out, replicates=20, gallery=24)


def gallery_of(run: hs.Run) -> Gallery:
    assert run.results.gallery is not None, run.results.manifest["dropped"]
    return run.results.gallery


def weights(map: NDArray[np.uint16]) -> Map:
    return map / 65535


# --- what is in it


def test_what_a_run_keeps(done: hs.Run) -> None:
    gallery = gallery_of(done)
    assert len(gallery.stacks) == 3
    ids = [gallery.texts[number]["id"].rpartition("/")[0] for number, _ in gallery.stacks]
    assert len(set(ids)) == 3, "of different documents"
    for number, maps in gallery.stacks:
        n = len(gallery.texts[number]["source"]["tokens"])
        assert 8 <= n <= 24
        assert list(maps) == [HeadId("encoder", layer, head) for layer in range(12) for head in range(12)]
        assert all(map.shape == (n, n) and map.dtype == np.uint16 for map in maps.values())
        assert_allclose(weights(np.stack([*maps.values()])).sum(-1), 1, atol=n / 65535)
    for example in gallery.examples:
        tokens = gallery.texts[example.text]["source"]["tokens"]
        assert example.map.shape == (len(tokens), len(tokens))
        assert len(tokens) <= 48
        assert example.value > 0
        assert "all" not in example.quantity.split()
        assert example.measure != "entropy"
    by_skill: dict[Any, list[Example]] = {}
    for example in gallery.examples:
        by_skill.setdefault((example.head, example.measure, example.quantity), []).append(example)
    assert len({head for head, *_ in by_skill}) == 144
    for examples in by_skill.values():
        documents = [gallery.texts[example.text]["id"].rpartition("/")[0] for example in examples]
        assert len(set(documents)) == len(documents) <= 2
    assert done.results.path is not None
    assert (done.results.path / "gallery.safetensors").stat().st_size < 3_000_000


def test_each_head_is_shown_for_what_its_tables_say_it_does_best(done: hs.Run) -> None:
    gallery = gallery_of(done)
    for measures in (("positions", "tokens"), ("relations",), ("coreference",)):
        best: dict[HeadId, tuple[float, str]] = {}
        for measure in measures:
            for row in done.results[measure]:
                if row["quantity"] not in ("sep_to_sep", "other_to_sep") and row.get("label") != "all":
                    head = HeadId(row["kind"], row["layer"] - 1, row["head"] - 1)
                    best[head] = max(best.get(head, (0, "")), (row["value"] - row["baseline"], row["quantity"]))
        shown = {example.head: example.quantity for example in gallery.examples if example.measure in measures}
        for head, quantity in shown.items():
            lift = next(
                row["value"] - row["baseline"]
                for measure in measures
                for row in done.results[measure].where(layer=head.layer + 1, head=head.head + 1, quantity=quantity)
            )
            assert lift == pytest.approx(best[head][0], abs=2e-6)


def test_a_value_is_that_of_the_map_beside_it(done: hs.Run) -> None:
    """Worked out again from the stored map, tokens and annotation, without the measures."""
    gallery = gallery_of(done)
    tried = set()
    for example in gallery.examples:
        text = gallery.texts[example.text]
        side, map = text["source"], weights(example.map)
        if "window" in text:
            continue
        n = len(map)
        if example.measure == "positions" and example.quantity in ("previous", "self", "next"):
            offset = {"previous": -1, "self": 0, "next": 1}[example.quantity]
            assert example.value == pytest.approx(np.diagonal(map, offset).sum() / n, abs=1e-3)
        elif example.quantity in ("to_sep", "to_cls"):
            role = {"to_cls": 1, "to_sep": 2}[example.quantity]
            assert example.value == pytest.approx(map[:, np.array(side["roles"]) == role].sum() / n, abs=1e-3)
        elif example.measure == "relations":
            label, _, direction = example.quantity.partition(" ")
            right, total = relation(side, map, label, turned=bool(direction))
            assert total == example.n
            assert right == pytest.approx(example.value * example.n), example.quantity
        else:
            continue
        tried.add(example.measure)
    assert tried == {"positions", "tokens", "relations"}


def relation(side: dict[str, Any], map: Map, label: str, turned: bool) -> tuple[int, int]:
    """Words of a label, and those of them whose favourite is their governor (METHODS §4.1; one sentence a text)."""
    of = [np.flatnonzero(np.array(side["words"]) == word) for word in range(len(side["forms"]))]
    between = np.array([[map[np.ix_(rows, columns)].sum(1).mean() for columns in of] for rows in of])
    scores = between.T if turned else between
    np.fill_diagonal(scores, -1)
    cases = [(word, head) for word, head, name in side["relations"] if name == label]
    return sum(int(scores[word].argmax()) == head for word, head in cases), len(cases)


def test_a_long_text_is_cut_to_where_it_matters(done: hs.Run, mini: Model) -> None:
    """Documents of 128 tokens, of which 48 are shown, with mentions of the same entity in them; the map is cut
    alike.
    """
    gallery = gallery_of(done)
    cut = [example for example in gallery.examples if example.measure == "coreference"]
    assert cut
    documents = {text.id: text for text in Encoder(mini.tokenizer, "document", 128, "truncate").texts(DOCUMENTS, Tally())}
    for example in cut[:6]:
        text = gallery.texts[example.text]
        start, total = text["window"]
        assert total == len(documents[text["id"]])
        entities = [entity for *_, entity in text["source"]["mentions"]]
        assert len(entities) > len(set(entities))
        whole = look(mini, documents[text["id"]], [example.head])[example.head]
        assert_allclose(weights(example.map), whole[start : start + 48, start : start + 48], atol=2e-5)


def test_distances_are_those_of_the_texts(tmp_path: Path) -> None:
    model = small(tmp_path, "gpt2", "gpt2")
    gallery = gallery_of(hs.run(model, CORPUS, ["positions"], max_length=60, replicates=0))
    texts = list(Encoder(model.tokenizer).texts(CORPUS, Tally()))
    total, rows = np.zeros((8, 8)), 0
    for text in texts:
        maps = [*look(model, text).values()]
        rows += len(text)
        total += [[sum(jensenshannon(p, q) ** 2 for p, q in zip(a, b, strict=True)) for b in maps] for a in maps]
    assert gallery.distances is not None
    assert gallery.points is not None
    assert gallery.points.rows == rows
    assert_allclose(gallery.distances, total / rows, atol=1e-5)
    for head, near in enumerate(gallery.points.neighbours):
        order = [other for other in np.argsort(gallery.distances[head]) if other != head]
        assert [other for other, _ in near] == order[:5]
        assert [distance for _, distance in near] == [float(gallery.distances[head, other]) for other, _ in near]


def test_behaviours_follow_the_tables(done: hs.Run) -> None:
    points = gallery_of(done).points
    assert points is not None
    for place, label in enumerate(points.behaviour):
        name = {"previous": "previous", "next": "next", "[SEP]": "to_sep", "[CLS]": "to_cls"}.get(label)
        if name is not None:
            measure = "tokens" if name.startswith("to_") else "positions"
            assert done[measure].table.where(quantity=name)["value"][place] > 0.5
        elif label not in ("", "broad"):
            best = [row for row in done.results["relations_best"] if row["label"] == label] or list(done.results["coreference_best"])
            assert any(str(HeadId("encoder", place // 12, place % 12)) in row["heads"].split(" | ") and row["lift"] > 0 for row in best)
    for place, value in enumerate(done["positions"].table.where(quantity="previous")["value"]):
        assert value <= 0.5 or points.behaviour[place] not in ("", "broad")


@pytest.mark.parametrize(("lift", "low", "sure"), [(0.2, 0.1, True), (0.2, -0.1, False), (0.2, np.nan, False), (0.0, 0.0, False)])
def test_only_what_is_sure_names_a_head(lift: float, low: float, sure: bool) -> None:
    best = Table.of({"label": ["all", "obj"], "heads": ["1-1", "1-2"], "lift": [lift] * 2, "lift_low": [low] * 2})
    assert [surely(row) for row in best] == [sure] * 2
    layout = HeadLayout((Site("encoder", 0, 2, 2, ""),))
    assert behaviours({"relations_best": best}, layout) == [(), ("obj",) if sure else ()]


# --- planted attention

VERBS = ["sees", "hears", "finds", "takes", "eats", "holds"]


def planted(turn: int, right: bool) -> tuple[Map, list[str], list[Word]]:
    """A sentence of 9 tokens, and heads that attend to: the token before, [SEP], everything, and the governor of
    objects, or else not.
    """
    words = [
        Word("the", head=2, relation="det", upos="DET"),
        Word("dog", head=3, relation="nsubj", upos="NOUN"),
        Word(VERBS[turn % 6], head=0, relation="root", upos="VERB"),
        Word("two", head=6, relation="nummod", upos="NUM"),
        Word("old", head=6, relation="amod", upos="ADJ"),
        Word("cats", head=3, relation="obj", upos="NOUN"),
        Word(".", head=3, relation="punct", upos="PUNCT"),
    ]
    n = 9
    before = np.eye(n, k=-1)
    before[0, 0] = 1
    to_sep = np.zeros((n, n))
    to_sep[:, -1] = 1
    objects = np.eye(n)
    objects[6] = np.eye(n)[3 if right else 2]
    maps = np.stack([before, to_sep, np.full((n, n), 1 / n), objects])
    return maps[None], ["[CLS]", *(word.form for word in words), "[SEP]"], words


def test_a_head_that_does_one_thing_is_shown_doing_it() -> None:
    made = [planted(turn, right=turn in (4, 17)) for turn in range(24)]
    run = hs.measure(
        [maps for maps, *_ in made],
        [tokens for _, tokens, _ in made],
        {"positions": {}, "tokens": {}, "relations": {"least": 1, "offsets": (-1,)}},
        words=[[None, *range(7), None]] * 24,
        annotation=[words for *_, words in made],
        documents=[f"d{turn}" for turn in range(24)],
    )
    gallery = gallery_of(run)
    assert [str(head) for head in gallery.stacks[0][1]] == ["1-1", "1-2", "1-3", "1-4"]
    shown: dict[tuple[str, str], list[Example]] = {}
    for example in gallery.examples:
        shown.setdefault((str(example.head), example.measure), []).append(example)
    for head, measure, quantity, value in (("1-1", "positions", "previous", 8 / 9), ("1-2", "tokens", "to_sep", 1.0)):
        assert [example.quantity for example in shown[head, measure]] == [quantity] * 2
        assert [example.value for example in shown[head, measure]] == pytest.approx([value] * 2)
    objects = shown["1-4", "relations"]
    assert [(example.quantity, example.value, example.n) for example in objects] == [("obj", 1.0, 1)] * 2
    assert {gallery.texts[example.text]["id"] for example in objects} == {"text 5", "text 18"}
    assert all(example.map[6, 3] == 65535 for example in objects)
    # Even attention is better than nothing at nothing.
    assert not [key for key in shown if key[0] == "1-3" and key[1] != "relations"]
    points = gallery.points
    assert points is not None
    assert points.behaviour[1] == "[SEP]"


def test_more_right_answers_are_a_better_example() -> None:
    """One of one is 2/3 by the rule of succession; three of four are as good, and four of four better."""

    def text(objects: int, right: int) -> tuple[Map, list[str], list[Word]]:
        words = [Word("v", head=0, relation="root"), *(Word("o", head=1, relation="obj") for _ in range(objects))]
        map = np.eye(objects + 1, k=1) + np.eye(objects + 1)
        map[-1] = np.eye(objects + 1)[0] if right == objects else np.eye(objects + 1)[-1]
        for row in range(1, right + 1):
            map[row] = np.eye(objects + 1)[0]
        return (map / map.sum(1, keepdims=True))[None, None], [word.form for word in words], words

    made = [text(1, 1), text(4, 4), text(4, 1), text(9, 6)]
    run = hs.measure(
        [maps for maps, *_ in made],
        [tokens for _, tokens, _ in made],
        {"relations": {"least": 1, "offsets": (3,)}},
        words=[list(range(len(tokens))) for _, tokens, _ in made],
        annotation=[words for *_, words in made],
    )
    gallery = gallery_of(run)
    assert [(gallery.texts[example.text]["id"], example.value, example.n) for example in gallery.examples] == [
        ("text 2", 1.0, 4),
        ("text 1", 1.0, 1),
    ]


def test_of_a_short_text_much_is_expected() -> None:
    """0.9 on [SEP] is 0.775 above even attention in 8 tokens, 0.88 is 0.83 above it in 20, and 0.92 only 0.67 in 4."""

    def text(tokens: int, share: float) -> tuple[Map, list[str]]:
        map = np.full((tokens, tokens), (1 - share) / (tokens - 1))
        map[:, -1] = share
        return map[None, None], ["a"] * (tokens - 1) + ["[SEP]"]

    made = [text(8, 0.9), text(20, 0.88), text(4, 0.92), text(60, 0.87)]
    run = hs.measure([map for map, _ in made], [tokens for _, tokens in made], ["tokens"], replicates=0)
    gallery = gallery_of(run)
    assert [gallery.texts[example.text]["id"] for example in gallery.examples] == ["text 2", "text 1"]
    assert [example.value for example in gallery.examples] == pytest.approx([0.88, 0.9])


# --- the same however the work is cut up


def test_batches_and_shards_change_nothing(mini: Model, done: hs.Run) -> None:
    again = hs.run(mini, Corpus.of(DOCUMENTS), MEASURES, replicates=20, gallery=24, batch_tokens=300, shard_tokens=500)
    assert gallery_of(again).encode() == gallery_of(done).encode()


def test_document_order_changes_nothing(mini: Model, done: hs.Run) -> None:
    again = hs.run(mini, Corpus.of(reversed(DOCUMENTS)), MEASURES, replicates=20, gallery=24)
    assert gallery_of(again).encode() == gallery_of(done).encode()


def test_a_resumed_run_has_the_same_gallery(tmp_path: Path) -> None:
    spec = make_spec({"measures": ["positions"], "limit": 20, "replicates": 0, "shard_tokens": 60, "batch_tokens": 60})
    stopped(spec, tmp_path / "run", 3)
    assert not (tmp_path / "run" / "gallery.safetensors").exists()
    resumed, whole = execute.execute(spec, tmp_path / "run", resume=True), execute.execute(spec)
    assert resumed.gallery is not None
    assert whole.gallery is not None
    assert (tmp_path / "run" / "gallery.safetensors").read_bytes() == whole.gallery.encode()


# --- on disk


def test_read_again_it_is_the_same(done: hs.Run) -> None:
    assert done.results.path is not None
    again, before = gallery_of(hs.open_run(done.results.path)), gallery_of(done)
    assert again.texts == before.texts
    assert again.encode() == before.encode()
    assert again.points is not None
    assert before.points is not None
    assert again.points.neighbours == before.points.neighbours
    for one, other in zip(again.examples, before.examples, strict=True):
        assert_array_equal(one.map, other.map)
        assert (one.head, one.quantity, one.value, one.n, one.text) == (other.head, other.quantity, other.value, other.n, other.text)


def test_a_run_without_one_opens_and_a_damaged_one_is_named(mini: Model, tmp_path: Path) -> None:
    path = tmp_path / "run" / "gallery.safetensors"
    hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0)
    path.write_bytes(path.read_bytes()[:-100])
    run = hs.open_run(tmp_path / "run")
    assert len(run["positions"].table) == 144 * 5
    with pytest.raises(RunError, match=r"gallery\.safetensors is damaged"):
        _ = run.results.gallery
    path.unlink()
    assert hs.open_run(tmp_path / "run").results.gallery is None
    again = hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0, overwrite=True)
    assert path.exists()
    none = hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0, overwrite=True, gallery=0)
    assert not path.exists()
    assert none.results.gallery is None
    assert none.signature == again.signature


def test_a_gallery_that_fails_does_not_take_the_run_with_it(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> Gallery:
        raise MemoryError("no room")

    monkeypatch.setattr(hang, "curate", fails)
    run = hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0)
    assert run.results.gallery is None
    again = hs.open_run(tmp_path / "run")
    assert len(again["positions"].table) == 144 * 5
    assert again.results.manifest["dropped"][-1] == "gallery left out (MemoryError: no room)"
    monkeypatch.undo()
    resumed = hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0, resume=True)
    assert resumed.results.gallery is not None
    assert not any("gallery" in line for line in hs.open_run(tmp_path / "run").results.manifest["dropped"])
    assert len(resumed["positions"].table) == 144 * 5


def test_a_run_ended_while_it_makes_its_gallery_is_complete(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"limit": 12, "replicates": 4}
    whole = hs.run(mini, "sampler", ["positions", "relations"], tmp_path / "whole", **settings)

    def killed(*given: object) -> Gallery:
        raise KeyboardInterrupt

    monkeypatch.setattr(hang, "curate", killed)
    with pytest.raises(KeyboardInterrupt):
        hs.run(mini, "sampler", ["positions", "relations"], tmp_path / "run", **settings)
    monkeypatch.undo()
    assert hs.open_run(tmp_path / "run").results.gallery is None
    opened = hs.open_run(tmp_path / "run")
    files = [tmp_path / "run" / "states.safetensors", *(tmp_path / "run" / "tables").iterdir()]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
    assert len(before) == 1 + len(whole.results)
    resumed = hs.run(mini, "sampler", ["positions", "relations"], tmp_path / "run", resume=True, **settings)
    assert gallery_of(resumed).encode() == gallery_of(whole).encode() == (tmp_path / "run" / "gallery.safetensors").read_bytes()
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert resumed.results.manifest["gallery"] == whole.results.manifest["gallery"]
    with pytest.raises(RunError, match="has changed since it was opened"):
        opened.results.check()


def test_a_run_made_without_one_gets_it_when_it_is_resumed(mini: Model, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"limit": 4, "replicates": 0}
    path = tmp_path / "run" / "gallery.safetensors"
    hs.run(mini, "sampler", ["positions"], tmp_path / "run", gallery=0, **settings)
    assert hs.run(mini, "sampler", ["positions"], tmp_path / "run", gallery=0, resume=True, **settings).results.gallery is None
    assert not path.exists()
    gallery_of(hs.run(mini, "sampler", ["positions"], tmp_path / "run", resume=True, **settings))
    made = path.stat().st_mtime_ns
    hs.run(mini, "sampler", ["positions"], tmp_path / "run", resume=True, **settings)
    assert path.stat().st_mtime_ns == made, "once is enough"


# --- what is held in memory

TOO_LONG = "gallery left out: texts are too long to keep their maps"


def test_texts_whose_maps_are_too_large_stay_out(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """144 maps of 20 x 20 numbers of four bytes are 230,400."""
    monkeypatch.setattr(sample, "MOST", 144 * 20 * 20 * 4)
    gallery = gallery_of(hs.run(mini, Corpus.of(DOCUMENTS), MEASURES, tmp_path / "some", replicates=4))
    assert max(len(text["source"]["tokens"]) for text in gallery.texts) == 20
    assert gallery.stacks
    assert not [example for example in gallery.examples if example.measure == "coreference"]
    assert hs.open_run(tmp_path / "some").results.manifest["dropped"][-1] == f"{TOO_LONG}, by document"
    monkeypatch.setattr(sample, "MOST", 1000)
    run = hs.run(mini, Corpus.of(DOCUMENTS), ["positions"], tmp_path / "none", replicates=0)
    assert run.results.gallery is None
    assert len(run["positions"].table) == 144 * 5
    assert run.results.manifest["dropped"][-1] == TOO_LONG
    assert hs.open_run(tmp_path / "none").results.manifest["dropped"][-1] == TOO_LONG
    assert hs.run(mini, Corpus.of(DOCUMENTS), ["positions"], tmp_path / "none", replicates=0, resume=True).results.gallery is None
    given = hs.measure([np.full((1, 2, 20, 20), 0.05)], [["a"] * 20], ["positions"], replicates=0)
    assert given.results.gallery is None
    assert given.results.manifest["dropped"][-1] == TOO_LONG


@pytest.mark.parametrize(("name", "tokenizer"), [("gpt2", "gpt2"), ("t5", "t5")])
def test_batches_of_the_second_look_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, tokenizer: str) -> None:
    model = small(tmp_path, name, tokenizer)
    runner = engines.runner_for(make_spec({"measures": ["positions"]}).resolved(False, "cpu"), model)
    texts = list(Encoder(model.tokenizer, decoder_start=model.decoder_start).texts(CORPUS, Tally()))
    whole = {text.id: maps for text, maps in runner.look(texts)}
    held: list[int] = []
    keep = runner._held

    def noted(batch):  # type: ignore[no-untyped-def]
        found = keep(batch)
        held.append(sum(maps.numel() * 4 for maps in found.values()))
        return found

    monkeypatch.setattr(runner, "_held", noted)
    assert len(list(runner.look(texts))) == 4
    (every,) = held
    held.clear()
    monkeypatch.setattr(shard, "MOST", every * 2 // 3)
    for text, maps in runner.look(texts):
        for kind, weights in maps.items():
            assert weights.shape == whole[text.id][kind].shape
            assert_allclose(weights, whole[text.id][kind], atol=5e-5)
    assert len(held) == 2
    assert max(held) <= every * 2 // 3


# --- other models

SENTENCES = ["The cat sat on a mat .", "A dog , the cats .", "The dog sat .", "On a mat the cat and a dog sat , the cat sat ."]
CORPUS = Corpus.of([Document(f"d{n}", (Sentence(tuple(map(Word, text.split()))),)) for n, text in enumerate(SENTENCES)])


def small(tmp_path: Path, name: str, tokenizer: str) -> Model:
    tokens = FAMILIES[tokenizer]()
    build(name, vocabulary=len(tokens)).save_pretrained(tmp_path / name)
    tokens.save_pretrained(tmp_path / name)
    return hs.load(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "tokenizer"),
    [("gpt2", "gpt2"), ("llama", "llama-3"), ("gpt_oss", "gpt2"), ("mpnet", "wordpiece"), ("t5", "t5"), ("bart", "roberta")],
)
def test_every_kind_of_model(tmp_path: Path, name: str, tokenizer: str) -> None:
    """Maps are those of the model, text by text, and fit the sides that they are shown with."""
    model = small(tmp_path, name, tokenizer)
    gallery = gallery_of(hs.run(model, CORPUS, max_length=60, replicates=4))
    encoder = Encoder(model.tokenizer, decoder_start=model.decoder_start)
    texts = {text.id: text for text in encoder.texts(CORPUS, Tally())}
    shown = [(number, head, map) for number, maps in gallery.stacks for head, map in maps.items()]
    shown += [(example.text, example.head, example.map) for example in gallery.examples]
    assert {head for _, head, _ in shown} == set(model.layout.ids())
    for number, head, map in shown:
        text = gallery.texts[number]
        expected = look(model, texts[text["id"]], [head])[head]
        assert_allclose(weights(map), expected, atol=5e-5)
        rows, columns = (len(text[side]["tokens"]) for side in sides(head, text))
        assert map.shape == (rows, columns)
    # Heads of one kind are compared, and others are left out.
    kinds = [head.kind for head in model.layout.ids()]
    compared = np.array([kind == max(kinds, key=kinds.count) for kind in kinds])
    assert gallery.distances is not None
    assert gallery.points is not None
    assert_array_equal(np.isfinite(gallery.distances), compared[:, None] & compared)
    assert_array_equal(np.isfinite(gallery.points.x), compared)
    assert [bool(near) for near in gallery.points.neighbours] == compared.tolist()


def sides(head: HeadId, text: dict[str, Any]) -> tuple[str, str]:
    if "target" not in text:
        return "source", "source"
    return {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}[head.kind]


# --- its parts


def test_the_curator_bounds_what_it_keeps(mini: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    from headscope.gallery import examples

    monkeypatch.setattr(examples, "BYTES", 20_000)
    gallery = gallery_of(hs.run(mini, "sampler", ["positions"], limit=12, replicates=0))
    assert sum(example.map.nbytes for example in gallery.examples) <= 20_000
    assert len({example.head for example in gallery.examples}) == len(gallery.examples), "one of each head before two of any"
