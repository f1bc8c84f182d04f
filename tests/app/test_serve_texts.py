"""Texts that are sent, and their maps: the same as those of `look`, whatever the text is."""

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


def test_models(client: TestClient, t5: Model) -> None:
    bert, second = client.get("/api/models").json()
    assert bert["name"] == "bert"
    assert second == {
        **{"name": "t5", "loaded": True, "encoder_decoder": True, "heads": 24, "max_tokens": None},
        "fingerprint": t5.fingerprint,
    }


def test_a_text_and_all_its_maps(client: TestClient, bert: Model) -> None:
    told = send(client, TEXT)
    encoded = typed(bert, TEXT).encoded
    assert told["text"]["source"]["tokens"] == list(encoded.pieces)
    assert told["text"]["id"] == told["id"]
    assert told["note"] == ""
    assert told["signature"].startswith("headscope:")
    assert f"|model:bert@{bert.fingerprint[:8]}|" in told["signature"]
    assert [site["heads"] for site in told["sites"]] == [4, 4]
    expected = look(bert, encoded)
    assert told["heads"][0] in map(str, expected)
    for head, weights in expected.items():
        assert_allclose(fetch(client, told["id"], str(head)), weights, rtol=0, atol=1 / 65535)


def test_influence_between_tokens(client: TestClient, start: Start, bert: Model) -> None:
    told = send(client, TEXT)
    assert list(told["influence"]["measures"]) == ["A", "G", "G*", "rollout", "norms"]
    expected = Influence(bert, typed(bert, TEXT).encoded)
    for measure in ("A", "G", "G*"):
        for _ in range(2):  # computed, and kept
            answer = client.get(f"/api/texts/{told['id']}/influence/{measure}").json()
        values = np.frombuffer(base64.b64decode(answer["values"]), "<u2").reshape(2, len(told["text"]["source"]["tokens"]), -1) / 65535
        for layer in (1, 2):
            weights = expected.grid(measure, layer, "token").weights
            assert_allclose(values[layer - 1] * answer["scales"][layer - 1], weights, atol=1e-4)
    for address, status, says in (
        (f"/api/texts/{told['id']}/influence/H", 404, "The measures are A, G, G*, rollout, norms"),
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


def test_windows(client: TestClient) -> None:
    id = send(client, TEXT)["id"]
    whole = fetch(client, id, "2-3")
    assert_allclose(fetch(client, id, "2-3", rows="1:4", columns="2:5"), whole[1:4, 2:5])
    assert_allclose(fetch(client, id, "2-3", rows="3:"), whole[3:])
    assert_allclose(fetch(client, id, "2-3", columns=":2"), whole[:, :2])
    for wrong in ("x", "1", "4:1", "2:2", "0:999", "-1:2", "1:2:3", "٣:٤", "9" * 30 + ":", "1.5:2"):
        answer = client.get(f"/api/texts/{id}/heads/2-3", params={"rows": wrong})
        assert answer.status_code == 422, wrong
        assert "rows" in answer.json()["error"]


def test_a_pair(client: TestClient, bert: Model) -> None:
    told = send(client, TEXT, second="A dog.")
    encoded = typed(bert, TEXT, "A dog.").encoded
    assert told["text"]["source"]["tokens"] == list(encoded.pieces)
    assert told["text"]["source"]["roles"].count(2) == 2
    assert_allclose(fetch(client, told["id"], "1-1"), look(bert, encoded)[HeadId("encoder", 0, 0)], rtol=0, atol=1 / 65535)


def test_an_encoder_decoder(client: TestClient, t5: Model) -> None:
    told = send(client, TEXT, "t5", second="The mat on the cat")
    encoded = typed(t5, TEXT, "The mat on the cat").encoded
    assert encoded.target is not None
    assert told["text"]["target"]["tokens"] == list(encoded.target.pieces)
    expected = look(t5, encoded)
    for head in ("1-2", "decoder/2-1", "cross/2-3"):
        assert_allclose(fetch(client, told["id"], head), expected[HeadId.parse(head)], rtol=0, atol=1 / 65535)
    assert fetch(client, told["id"], "cross/1-1").shape == (len(encoded.target), len(encoded))


def test_what_is_not_there(client: TestClient) -> None:
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
def test_odd_texts(client: TestClient, text: str, model: str) -> None:
    answer = client.post("/api/texts", json={"model": model, "text": text})
    told = answer.json()
    if (model, len(text)) == ("t5", 5000):  # whose tokenizer has a token for each letter
        assert answer.status_code == 422
        assert told["error"] == "a word is longer than the 511 tokens that fit"
        return
    assert answer.status_code == 200
    assert "".join(told["text"]["source"]["forms"]) == "".join(text.split())
    size = len(told["text"]["source"]["tokens"])
    assert fetch(client, told["id"], "1-1").shape == (size, size)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_no_text(client: TestClient, text: str) -> None:
    answer = client.post("/api/texts", json={"model": "bert", "text": text})
    assert answer.status_code == 422
    assert answer.json() == {"error": "there is no text to look at", "remedy": "Give at least one word"}


def test_lone_surrogates_are_refused(client: TestClient) -> None:
    body = b'{"model": "bert", "text": "a \\ud83d b"}'
    answer = client.post("/api/texts", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert set(answer.json()) == {"error", "remedy"}


def test_long_texts_are_cut_and_it_is_said(client: TestClient, start: Start) -> None:
    told = send(client, "cat " * 2000)
    assert len(told["text"]["source"]["tokens"]) == 64  # what the positions of this model allow
    assert told["note"] == "1,938 words cut off at the end"
    assert fetch(client, told["id"], "1-1").shape == (64, 64)
    told = send(start(max_tokens=16), "cat " * 2000)
    assert len(told["text"]["source"]["tokens"]) == 16
    answer = start(characters=10).post("/api/texts", json={"model": "bert", "text": TEXT})
    assert answer.status_code == 422
    assert "characters" in answer.json()["error"]


def test_of_very_long_texts_only_what_can_fit_is_tokenised(bert: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    tokens = type(bert.tokenizer).tokens

    def counted(self: Any, words: Any, tally: Any = None) -> Any:
        seen.append(len(words))
        return tokens(self, words, tally)

    monkeypatch.setattr(type(bert.tokenizer), "tokens", counted)
    reading = typed(bert, "cat, " * 20_000, "dog " * 30, 20)
    assert seen == [20, 20]
    # 17 words fit beside [CLS] and two [SEP]: 8 and 9 of 40,000 and 30
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
def test_bodies_that_say_nothing(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/texts", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"error", "remedy"}


def test_what_is_no_json_is_said_so_that_a_person_understands(client: TestClient) -> None:
    for body, said in [(b"{", "the request is not valid JSON"), (b"[]", "a JSON object is expected, sent as application/json")]:
        answer = client.post("/api/texts", content=body, headers={"Content-Type": "application/json"})
        assert answer.json() == {"error": said, "remedy": "/docs describes what is expected"}


def test_a_form_is_not_json(client: TestClient) -> None:
    assert client.post("/api/texts", data={"model": "bert", "text": TEXT}).status_code == 422
    body = json.dumps({"model": "bert", "text": TEXT})
    assert client.post("/api/texts", content=body, headers={"Content-Type": "text/plain"}).status_code == 422


def test_old_texts_are_forgotten(start: Start) -> None:
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
    fetch(client, ids[1], "1-1")  # it was used after the third
    assert client.get(f"/api/texts/{ids[2]}/heads/1-1").status_code == 404


@pytest.mark.parametrize("room", [1, 300, 700, 3000])
def test_maps_without_room_are_made_again(start: Start, bert: Model, room: int) -> None:
    client = start(map_bytes=room)
    texts = ["a cat on the mat", "the dog"]
    ids = [send(client, text)["id"] for text in texts]
    for _ in range(2):
        for id, text in zip(ids, texts, strict=True):
            for head, weights in look(bert, typed(bert, text).encoded).items():
                assert_allclose(fetch(client, id, str(head)), weights, rtol=0, atol=1 / 65535)
                held = client.app.state.headscope.texts  # type: ignore[attr-defined]
                assert held.bytes == sum(weights.nbytes for weights in held._maps.values()) <= room


def test_many_at_once(start: Start, bert: Model) -> None:
    app = start().app
    texts = [f"the cat {'play ' * number}" for number in range(20)]

    async def visit() -> list[tuple[Any, bytes]]:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as client:

            async def one(text: str) -> tuple[Any, bytes]:
                told = (await client.post("/api/texts", json={"model": "bert", "text": text})).json()
                return told, (await client.get(f"/api/texts/{told['id']}/heads/1-2")).content

            return await asyncio.gather(*map(one, texts))

    for text, (_, content) in zip(texts, asyncio.run(visit()), strict=True):
        expected = look(bert, typed(bert, text).encoded)[HeadId("encoder", 0, 1)]
        assert_allclose(np.frombuffer(content, "<u2") / 65535, expected.ravel(), rtol=0, atol=1 / 65535)


def test_a_busy_model_holds_up_nothing_else(start: Start) -> None:
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


def test_a_model_is_loaded_when_first_needed() -> None:
    with TestClient(create_app({}, {"mini": "mini"}), base_url="http://localhost") as client:
        told = send(client, "The old clock on the wall stopped.", "mini")
        assert fetch(client, told["id"], "8-10").shape == (10, 10)
        assert client.get("/api/models").json()[0]["loaded"]
        assert client.get("/api/runs").json() == []
