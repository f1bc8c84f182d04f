"""Texts that are sent to the server: their maps equal those of `look`, for any text."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.testing import assert_allclose

from headscope.app.create import create_app
from headscope.core.heads import HeadId
from headscope.engine.typed_text import typed
from headscope.gallery.texts import look
from headscope.models.model import Model
from headscope.studies.flow.influence import Influence

TEXT = "The cats play on a mat."
Start = Callable[..., TestClient]


def send(client: TestClient, text: str, model: str = "bert", **more: Any) -> Any:
    answer = client.post("/api/texts", json={"model": model, "text": text, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def fetch(client: TestClient, id: str, head: str, **window: str) -> np.ndarray:
    answer = client.get(f"/api/texts/{id}/heads/{head}", params=window)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    rows, columns = map(int, answer.headers["x-shape"].split(","))
    weights: np.ndarray = np.frombuffer(answer.content, "<u2").reshape(rows, columns) / 65535
    return weights


def test_models_are_listed_with_their_properties(client: TestClient, t5: Model) -> None:
    bert, second = client.get("/api/models").json()
    assert bert["name"] == "bert"
    assert second == {
        **{"name": "t5", "loaded": True, "encoder_decoder": True, "heads": 24, "max_tokens": None},
        "fingerprint": t5.fingerprint,
    }


def test_all_maps_of_a_text_equal_those_of_look(client: TestClient, bert: Model) -> None:
    reply = send(client, TEXT)
    encoded = typed(bert, TEXT).encoded
    assert reply["text"]["source"]["tokens"] == list(encoded.pieces)
    assert reply["text"]["id"] == reply["id"]
    assert reply["note"] == ""
    assert reply["signature"].startswith("headscope:")
    assert f"|model:bert@{bert.fingerprint[:8]}|" in reply["signature"]
    assert [site["heads"] for site in reply["sites"]] == [4, 4]
    expected = look(bert, encoded)
    assert reply["heads"][0] in map(str, expected)
    for head, weights in expected.items():
        assert_allclose(fetch(client, reply["id"], str(head)), weights, rtol=0, atol=1 / 65535)


def test_influence_between_tokens_equals_that_of_python(client: TestClient, start: Start, bert: Model) -> None:
    reply = send(client, TEXT)
    assert list(reply["influence"]["measures"]) == ["A", "G", "G*", "rollout", "norms"]
    expected = Influence(bert, typed(bert, TEXT).encoded)
    for measure in ("A", "G", "G*"):
        for _ in range(2):  # computed, and then cached
            answer = client.get(f"/api/texts/{reply['id']}/influence/{measure}").json()
        values = np.frombuffer(base64.b64decode(answer["values"]), "<u2").reshape(2, len(reply["text"]["source"]["tokens"]), -1) / 65535
        for layer in (1, 2):
            weights = expected.grid(measure, layer, "token").weights
            assert_allclose(values[layer - 1] * answer["scales"][layer - 1], weights, atol=1e-4)
    for address, status, says in (
        (f"/api/texts/{reply['id']}/influence/H", 404, "The measures are A, G, G*, rollout, norms"),
        ("/api/texts/none/influence/A", 404, "Send the text again"),
    ):
        answer = client.get(address)
        assert answer.status_code == status
        assert answer.json()["remedy"] == says
    with start(influence_tokens=4, map_bytes=8) as small:
        id = send(small, TEXT)["id"]
        answer = small.get(f"/api/texts/{id}/influence/G*")
        assert (answer.status_code, answer.json()["remedy"]) == (422, "Shorten the text, or use headscope view --measure G*")
        assert small.get(f"/api/texts/{id}/influence/rollout").status_code == 200


def test_windows_of_a_map_are_returned_and_invalid_ones_are_refused(client: TestClient) -> None:
    id = send(client, TEXT)["id"]
    whole = fetch(client, id, "2-3")
    assert_allclose(fetch(client, id, "2-3", rows="1:4", columns="2:5"), whole[1:4, 2:5])
    assert_allclose(fetch(client, id, "2-3", rows="3:"), whole[3:])
    assert_allclose(fetch(client, id, "2-3", columns=":2"), whole[:, :2])
    for wrong in ("x", "1", "4:1", "2:2", "0:999", "-1:2", "1:2:3", "٣:٤", "9" * 30 + ":", "1.5:2"):
        answer = client.get(f"/api/texts/{id}/heads/2-3", params={"rows": wrong})
        assert answer.status_code == 422, wrong
        assert "rows" in answer.json()["error"]


def test_maps_of_a_pair_equal_those_of_look(client: TestClient, bert: Model) -> None:
    reply = send(client, TEXT, second="A dog.")
    encoded = typed(bert, TEXT, "A dog.").encoded
    assert reply["text"]["source"]["tokens"] == list(encoded.pieces)
    assert reply["text"]["source"]["roles"].count(2) == 2
    assert_allclose(fetch(client, reply["id"], "1-1"), look(bert, encoded)[HeadId("encoder", 0, 0)], rtol=0, atol=1 / 65535)


def test_maps_of_an_encoder_decoder_equal_those_of_look(client: TestClient, t5: Model) -> None:
    reply = send(client, TEXT, "t5", second="The mat on the cat")
    encoded = typed(t5, TEXT, "The mat on the cat").encoded
    assert encoded.target is not None
    assert reply["text"]["target"]["tokens"] == list(encoded.target.pieces)
    expected = look(t5, encoded)
    for head in ("1-2", "decoder/2-1", "cross/2-3"):
        assert_allclose(fetch(client, reply["id"], head), expected[HeadId.parse(head)], rtol=0, atol=1 / 65535)
    assert fetch(client, reply["id"], "cross/1-1").shape == (len(encoded.target), len(encoded))


def test_unknown_heads_texts_and_models_are_not_found(client: TestClient) -> None:
    id = send(client, TEXT)["id"]
    for address in (f"/api/texts/{id}/heads/99-1", f"/api/texts/{id}/heads/x", f"/api/texts/{id}/heads/", "/api/texts/none/heads/1-1"):
        answer = client.get(address)
        assert answer.status_code == 404, address
        assert set(answer.json()) == {"error", "remedy"}
    answer = client.post("/api/texts", json={"model": "../bert", "text": TEXT})
    assert answer.status_code == 404
    assert answer.json()["remedy"] == "The models are bert, t5"


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a 🐈‍⬛ and 👩‍👩‍👧",
        "שלום עולם",
        "مرحبا بالعالم",
        "a\0b",
        "\0",
        "‮abc",
        "a\u0301\u0301",
        "x" * 5000,
        "\ufffe \U0010ffff",
    ],
)
@pytest.mark.parametrize("model", ["bert", "t5"])
def test_unusual_texts_keep_all_their_characters(client: TestClient, text: str, model: str) -> None:
    answer = client.post("/api/texts", json={"model": model, "text": text})
    reply = answer.json()
    if (model, len(text)) == ("t5", 5000):  # its tokenizer has one token per letter
        assert answer.status_code == 422
        assert reply["error"] == "a word is longer than the 511 tokens that fit"
        return
    assert answer.status_code == 200
    assert "".join(reply["text"]["source"]["forms"]) == "".join(text.split())
    size = len(reply["text"]["source"]["tokens"])
    assert fetch(client, reply["id"], "1-1").shape == (size, size)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_text_is_refused(client: TestClient, text: str) -> None:
    answer = client.post("/api/texts", json={"model": "bert", "text": text})
    assert answer.status_code == 422
    assert answer.json() == {"error": "there is no text to look at", "remedy": "Give at least one word"}


def test_lone_surrogates_are_refused(client: TestClient) -> None:
    body = b'{"model": "bert", "text": "a \\ud83d b"}'
    answer = client.post("/api/texts", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert set(answer.json()) == {"error", "remedy"}


def test_long_texts_are_cut_with_a_note_or_refused(client: TestClient, start: Start) -> None:
    reply = send(client, "cat " * 2000)
    assert len(reply["text"]["source"]["tokens"]) == 64  # the number of positions of this model
    assert reply["note"] == "1,938 words cut off at the end"
    assert fetch(client, reply["id"], "1-1").shape == (64, 64)
    reply = send(start(max_tokens=16), "cat " * 2000)
    assert len(reply["text"]["source"]["tokens"]) == 16
    answer = start(characters=10).post("/api/texts", json={"model": "bert", "text": TEXT})
    assert answer.status_code == 422
    assert "characters" in answer.json()["error"]


def test_only_words_of_a_very_long_text_that_can_fit_are_tokenised(bert: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    tokens = type(bert.tokenizer).tokens

    def counted(self: Any, words: Any, tally: Any = None) -> Any:
        seen.append(len(words))
        return tokens(self, words, tally)

    monkeypatch.setattr(type(bert.tokenizer), "tokens", counted)
    reading = typed(bert, "cat, " * 20_000, "dog " * 30, 20)
    assert seen == [20, 20]
    # 17 words fit beside [CLS] and two [SEP]: 8 of 40,000, and 9 of 30
    assert (len(reading.encoded), reading.note) == (20, "40,013 words cut off at the end")
    seen.clear()
    assert typed(bert, "cat dog", max_length=20).note == ""


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"",
            b"{",
            b"[]",
            b"null",
            b'"x"',
            b"{}",
            b'{"model": "bert"}',
            b'{"model": 1, "text": "a"}',
            b'{"model": "bert", "text": ["a"]}',
        ),
        *(
            b'{"model": "bert", "text": "a", "more": 1}',
            b'{"model": "bert", "text": "a", "second": 5}',
            b"\xff\xfe",
            b"[" * 100_000,
            b"NaN",
        ),
    ],
)
def test_invalid_bodies_are_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/texts", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"error", "remedy"}


def test_a_body_that_is_no_json_object_gets_a_clear_message(client: TestClient) -> None:
    for body, said in [(b"{", "the request is not valid JSON"), (b"[]", "a JSON object is expected, sent as application/json")]:
        answer = client.post("/api/texts", content=body, headers={"Content-Type": "application/json"})
        assert answer.json() == {"error": said, "remedy": "/docs describes what is expected"}


def test_forms_and_plain_text_are_refused(client: TestClient) -> None:
    assert client.post("/api/texts", data={"model": "bert", "text": TEXT}).status_code == 422
    body = json.dumps({"model": "bert", "text": TEXT})
    assert client.post("/api/texts", content=body, headers={"Content-Type": "text/plain"}).status_code == 422


def test_the_least_recently_used_text_is_removed(start: Start) -> None:
    client = start(texts=2)
    ids = [send(client, text)["id"] for text in ("a cat", "a dog", "the cat")]
    assert len(set(ids)) == 3
    answer = client.get(f"/api/texts/{ids[0]}/heads/1-1")
    assert answer.status_code == 404
    assert answer.json()["error"] == "the server does not have this text, or no longer has it"
    assert answer.json()["remedy"] == "Send the text again"
    fetch(client, ids[1], "1-1")
    assert send(client, "a cat")["id"] == ids[0]  # the same text has the same address again
    fetch(client, ids[0], "1-1")
    fetch(client, ids[1], "1-1")  # it was used more recently than the third
    assert client.get(f"/api/texts/{ids[2]}/heads/1-1").status_code == 404


@pytest.mark.parametrize("room", [1, 300, 700, 3000])
def test_maps_that_do_not_fit_the_cache_are_computed_again(start: Start, bert: Model, room: int) -> None:
    client = start(map_bytes=room)
    texts = ["a cat on the mat", "the dog"]
    ids = [send(client, text)["id"] for text in texts]
    for _ in range(2):
        for id, text in zip(ids, texts, strict=True):
            for head, weights in look(bert, typed(bert, text).encoded).items():
                assert_allclose(fetch(client, id, str(head)), weights, rtol=0, atol=1 / 65535)
                held = client.app.state.headscope.texts  # type: ignore[attr-defined]
                assert held.bytes == sum(weights.nbytes for weights in held._maps.values()) <= room


def test_concurrent_texts_get_their_correct_maps(start: Start, bert: Model) -> None:
    app = start().app
    texts = [f"the cat {'play ' * number}" for number in range(20)]

    async def visit() -> list[tuple[Any, bytes]]:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as client:

            async def one(text: str) -> tuple[Any, bytes]:
                reply = (await client.post("/api/texts", json={"model": "bert", "text": text})).json()
                return reply, (await client.get(f"/api/texts/{reply['id']}/heads/1-2")).content

            return await asyncio.gather(*map(one, texts))

    for text, (_, content) in zip(texts, asyncio.run(visit()), strict=True):
        expected = look(bert, typed(bert, text).encoded)[HeadId("encoder", 0, 1)]
        assert_allclose(np.frombuffer(content, "<u2") / 65535, expected.ravel(), rtol=0, atol=1 / 65535)


def test_a_busy_model_does_not_block_other_requests(start: Start) -> None:
    app = start(waiting=2).app
    done = threading.Event()

    async def visit() -> list[int]:
        models = app.state.headscope.models  # type: ignore[attr-defined]
        held = [asyncio.create_task(models.work("bert", lambda model: done.wait(30))) for _ in range(2)]
        await asyncio.sleep(0)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as client:
            other = await client.post("/api/texts", json={"model": "t5", "text": TEXT})
            index = await client.get("/")
            busy = await client.post("/api/texts", json={"model": "bert", "text": TEXT})
            done.set()
            await asyncio.gather(*held)
            after = await client.post("/api/texts", json={"model": "bert", "text": TEXT})
        return [other.status_code, index.status_code, busy.status_code, after.status_code]

    assert asyncio.run(visit()) == [200, 200, 429, 200]


def test_a_named_model_is_loaded_when_a_text_is_sent() -> None:
    with TestClient(create_app({}, {"mini": "mini"}), base_url="http://localhost") as client:
        reply = send(client, "The old clock on the wall stopped.", "mini")
        assert fetch(client, reply["id"], "8-10").shape == (10, 10)
        assert client.get("/api/models").json()[0]["loaded"]
        assert client.get("/api/runs").json() == []
