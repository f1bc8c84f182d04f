"""Requests of the page of typed texts: generated text, differences of heads, and known heads of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import headscope as hs
from headscope.app.create import create_app
from headscope.app.limits import Limits
from headscope.app.models import find_models
from headscope.core.document import Document
from headscope.corpora import Corpus, read
from headscope.engine.typed_text import typed
from headscope.gallery.differences import differences
from headscope.gallery.texts import look
from headscope.models.generation import generates
from headscope.models.model import Model

PROMPT = "The keys to the cabinet are on the"
Start = Callable[..., TestClient]


@pytest.fixture(scope="module")
def live() -> Iterator[TestClient]:
    """A client of an app with both embedded models, a run of `mini`, and a run of `mini` with random weights."""
    corpus = Corpus.of([Document(document.id, document.sentences[1:2]) for document in read("sampler")])
    runs = {
        "redrawn": hs.run("mini", corpus, ["positions"], replicates=50, gallery=0, weights="random").results,
        "one": hs.run("mini", corpus, ["positions"], replicates=50).results,
    }
    with TestClient(create_app(runs, {"mini": "mini", "mini-decoder": "mini-decoder"}, Limits()), base_url="http://localhost") as client:
        yield client


def send(client: TestClient, text: str, model: str, **more: Any) -> Any:
    answer = client.post("/api/texts", json={"model": model, "text": text, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_decoder_generates_the_same_text_as_view(live: TestClient) -> None:
    reply = send(live, PROMPT, "mini-decoder", generate=5)
    view = hs.view("mini-decoder", PROMPT, generate=5)
    side = reply["text"]["source"]
    assert side["tokens"] == list(view.text.pieces)
    assert side["generated"] == view.text.generated_from
    assert reply["signature"] == view.signature
    assert reply["note"].startswith("mini-decoder wrote the last 5 tokens, greedily")
    answer = live.get(f"/api/texts/{reply['id']}/heads/5-3")
    row = np.frombuffer(answer.content, "<u2").reshape(len(side["tokens"]), -1)[side["generated"] - 1] / 65535
    assert np.abs(row[: side["generated"]] - view.step(1, "5-3")).max() < 1e-4
    assert reply["id"] != send(live, PROMPT, "mini-decoder")["id"] != send(live, PROMPT, "mini-decoder", generate=6)["id"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"model": "mini", "generate": 3}, "mini does not continue texts"),
        ({"model": "mini-decoder", "generate": 65}, "65 tokens were requested, and 64 are allowed"),
        ({"model": "mini-decoder", "generate": 3, "second": "on"}, "a model continues one text, not two"),
        ({"model": "mini-decoder", "generate": 0}, "generate: Input should be greater than or equal to 1"),
        ({"model": "mini-decoder", "generate": "many"}, "generate: Input should be a valid integer, unable to parse string as an integer"),
    ],
)
def test_invalid_generation_requests_are_refused(live: TestClient, body: dict[str, Any], error: str) -> None:
    answer = live.post("/api/texts", json={"text": PROMPT, **body})
    assert answer.status_code == 422
    assert answer.json()["error"] == error


def test_a_named_decoder_is_loaded_so_that_it_can_generate() -> None:
    models = find_models(["mini-decoder", "mini"], {})
    assert isinstance(models["mini-decoder"], Model)
    assert isinstance(models["mini"], Model)
    assert generates(models["mini-decoder"])
    assert models["mini"].whole is None
    assert models["mini-decoder"].fingerprint == hs.load("mini-decoder").fingerprint


def test_a_prompt_that_fills_the_context_is_refused(live: TestClient) -> None:
    answer = live.post("/api/texts", json={"model": "mini-decoder", "text": "cat " * 600, "generate": 2})
    assert answer.status_code == 422
    assert answer.json()["error"] == "the prompt fills the 512 tokens that mini-decoder can read"


def test_a_model_is_described_with_known_heads_and_examples(live: TestClient) -> None:
    reply = live.get("/api/models/mini").json()
    assert (reply["kind"], reply["generate"], reply["loaded"]) == ("encoder", 0, True)
    first = reply["known"][0]
    assert (first["head"], first["word"], first["run"]) == ("1-5", "next token", "one")  # the run with random weights is not used
    assert {head["run"] for head in reply["known"]} == {"one"}
    seen = [example for example in reply["examples"] if example["head"]]
    assert seen[0]["head"] == "1-5"
    assert {example["mode"] for example in reply["examples"]} == {"one", "compare", "pair"}
    decoder = live.get("/api/models/mini-decoder").json()
    assert (decoder["kind"], decoder["generate"], decoder["known"]) == ("decoder", 64, [])
    assert any(example["generate"] for example in decoder["examples"])
    assert live.get("/api/models/nobody").status_code == 404


def test_examples_are_read_completely_by_their_models(live: TestClient) -> None:
    for model in ("mini", "mini-decoder"):
        for example in live.get(f"/api/models/{model}").json()["examples"]:
            more = {"second": example["second"]} if example["mode"] == "pair" else {}
            reply = send(live, example["text"], model, **more)
            assert reply["note"] == "", example
            if example["mode"] == "compare":
                other = send(live, example["second"], model)
                assert live.get(f"/api/texts/{reply['id']}/differences/{other['id']}").status_code == 200


def test_differences_between_texts_equal_those_of_their_maps(client: TestClient, bert: Model) -> None:
    texts = ["the cats play", "the dogs play"]
    ids = [send(client, text, "bert")["id"] for text in texts]
    reply = client.get(f"/api/texts/{ids[0]}/differences/{ids[1]}").json()
    encoded = [typed(bert, text).encoded for text in texts]
    found = differences(encoded[0], encoded[1], look(bert, encoded[0]), look(bert, encoded[1])).heads
    assert [row["head"] for row in reply["heads"]] == [str(one.head) for one in found]
    assert [row["difference"] for row in reply["heads"]] == pytest.approx([one.value for one in found], abs=1e-4)
    assert reply["changed"] == [["cats", "dogs"]]
    assert reply["aligned"]["encoder"]["rows"] == [[place, place] for place in range(5)]


def test_differences_of_an_encoder_decoder_cover_all_its_kinds_of_attention(client: TestClient) -> None:
    ids = [send(client, text, "t5", second="the mat")["id"] for text in ("the cat", "the dog")]
    reply = client.get(f"/api/texts/{ids[0]}/differences/{ids[1]}").json()
    assert set(reply["aligned"]) == {"encoder", "decoder", "cross"}
    found = {row["head"]: row["difference"] for row in reply["heads"]}
    assert found["encoder/1-1"] > 1e-4
    assert found["decoder/1-1"] == 0  # this head reads the same target, and nothing of the source yet


def test_texts_that_cannot_be_compared_are_refused(client: TestClient, start: Start) -> None:
    cat, many = (send(client, text, "bert")["id"] for text in ("the cat", "a dog play x y z"))
    answer = client.get(f"/api/texts/{cat}/differences/{many}")
    assert answer.status_code == 422
    assert answer.json()["error"] == "the texts have 2 and 6 words, and only 0 correspond, too few to compare heads"
    other = send(client, "the cat", "t5")["id"]
    assert client.get(f"/api/texts/{cat}/differences/{other}").json()["error"] == "the texts were read by different models"
    assert client.get(f"/api/texts/{cat}/differences/none").status_code == 404
    small = start(map_bytes=100)
    cat, dog = (send(small, text, "bert")["id"] for text in ("the cat", "the dog"))
    assert small.get(f"/api/texts/{cat}/differences/{dog}").json()["error"] == "the texts are too long to compare all heads"
