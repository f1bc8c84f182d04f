"""The API: runs and their tables, models, texts and their maps; and the state that it answers from."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from headscope.app.details import details
from headscope.app.errors import missing
from headscope.app.limits import Limits
from headscope.app.models import ServedModels
from headscope.app.served_runs import ServedRuns
from headscope.app.texts import SentTexts

RunName = Annotated[str, Path(description="a name that /api/runs lists")]


@dataclass(frozen=True)
class AppState:
    """What requests are answered from: runs, models, texts and limits."""

    runs: ServedRuns
    models: ServedModels
    texts: SentTexts
    limits: Limits

    def public(self, text: str) -> str:
        """A message with the names of runs and models in place of their paths."""
        places = {path: name for path, name in (self.runs.places() | self.models.places()).items() if len(PurePath(path).parts) > 1}
        for path in sorted(places, key=len, reverse=True):
            text = text.replace(path, places[path])
        return text

    def close(self) -> None:
        """Begin no new work."""
        self.runs.close()
        self.models.close()


async def state(request: Request) -> AppState:
    """The state of the app that a request was sent to."""
    app_state: AppState = request.app.state.headscope
    return app_state


class ProblemOut(BaseModel):
    """What is wrong, and what to do about it."""

    error: str
    remedy: str


class RunSummary(BaseModel):
    """A run in a few fields."""

    name: str
    model: str
    corpus: str
    measures: list[str]
    texts: int | None
    heads: int
    signature: str


class TableSummary(BaseModel):
    """A table of a run."""

    name: str
    columns: list[str]
    rows: int


class ModelSummary(BaseModel):
    """A model that can read texts; fields that are unknown before it is loaded are null."""

    name: str
    loaded: bool
    encoder_decoder: bool | None
    heads: int | None
    max_tokens: int | None
    fingerprint: str | None


class KnownHeadOut(BaseModel):
    """What a served run says of a head."""

    head: str
    word: str = Field(description="in a few words, as in `objects`")
    sentence: str = Field(description="what it does, with the numbers")
    run: str = Field(description="a name that /api/runs lists")


class ExampleOut(BaseModel):
    """A text to begin with."""

    text: str
    second: str | None = Field(description="the second text")
    mode: Literal["one", "compare", "pair"] = Field(description="what the second text is: none, one to compare, the other of a pair")
    generate: int | None = Field(description="tokens to continue the text by")
    head: str | None = Field(description="the head to open")
    about: str = Field(description="what it shows")


class ModelDetails(ModelSummary):
    """A model as a page of texts offers it."""

    kind: Literal["encoder", "decoder", "encoder-decoder"]
    generate: int = Field(description="tokens that it writes after a text, at most; 0 if it does not continue texts")
    known: list[KnownHeadOut] = Field(description="heads labelled in served runs of this model, those that find a relation first")
    examples: list[ExampleOut]


class TextIn(BaseModel):
    """A text for a model. `second` is the other text of a pair, or what the decoder of an encoder-decoder reads. With
    `generate`, a decoder continues the text by this many tokens, greedily.
    """

    model_config = ConfigDict(extra="forbid")
    model: str
    text: str
    second: str | None = None
    generate: Annotated[int, Field(ge=1)] | None = None


class TextOut(BaseModel):
    """A text as the model read it: its tokens and words, the model's layers, and a `note` on what was omitted."""

    id: str = Field(description="the address of its maps: /api/texts/{id}/heads/{head}")
    text: dict[str, Any]
    sites: list[dict[str, Any]]
    signature: str
    note: str
    heads: list[str] = Field(description="heads to show first")
    influence: dict[str, Any] = Field(description="measures of influence between its tokens: /api/texts/{id}/influence/{measure}")


class HeadDifferenceOut(BaseModel):
    """How differently a head attends in two texts."""

    head: str
    difference: float = Field(description="mean total variation distance between the rows of words that correspond, 0 to 1")
    largest: float = Field(description="the largest of these distances")
    words: tuple[str, str] = Field(description="the words of both texts whose rows they are")


class AlignedOut(BaseModel):
    """Places in both texts that correspond, counted from 0 over words and special tokens."""

    rows: list[tuple[int, int]]
    columns: list[tuple[int, int]]


class DifferencesOut(BaseModel):
    """How differently the heads of a model attend in two texts, between words."""

    words: int = Field(description="words that correspond; rows of other words are not compared")
    changed: list[tuple[str, str]] = Field(description="words of the first text and what stands in their place in the second")
    aligned: dict[str, AlignedOut] = Field(description="rows and columns that correspond, by kind of attention")
    heads: list[HeadDifferenceOut] = Field(description="every head, in the order of the model")


class InfluenceOut(BaseModel):
    """Influence between the tokens of a text, layer by layer; rows are what is influenced, columns what influences
    it.
    """

    scales: list[float] = Field(description="the highest value of each layer")
    values: str = Field(description="base64 of little-endian 16-bit numbers, layer by layer and row by row; 65535 is the layer's scale")
    settings: str = Field(description="what could change the numbers, as in measure:G|norm:frobenius")
    note: str = Field(description="how a sketched measure was estimated, and its error; empty for an exact one")


Has = Annotated[AppState, Depends(state)]
router = APIRouter(prefix="/api", responses={status: {"model": ProblemOut} for status in (404, 409, 422, 429)})


@router.get("/runs", tags=["runs"])
async def runs(has: Has) -> list[RunSummary]:
    """The runs that are served."""
    return [RunSummary(**summary) for summary in has.runs.describe()]


@router.get("/runs/{name}", tags=["runs"], response_class=Response, responses={200: {"content": {"application/json": {}}}})
async def run(has: Has, name: RunName) -> Response:
    """Everything the views show of a run: every number of every head, curves by layer, best heads, texts."""
    return Response((await has.runs.inside(name)).data, media_type="application/json")


@router.get("/runs/{name}/tables", tags=["runs"])
async def tables(has: Has, name: RunName) -> list[TableSummary]:
    """The tables of a run."""
    results = has.runs[name]
    return await has.runs.work(lambda: [TableSummary(name=t, columns=results[t].columns, rows=len(results[t])) for t in results])


@router.get(
    "/runs/{name}/tables/{table}",
    tags=["runs"],
    response_class=Response,
    responses={200: {"content": {"application/json": {}, "text/csv": {}}}},
)
async def table(
    has: Has,
    name: RunName,
    table: Annotated[str, Path(description="a name that /api/runs/{name}/tables lists")],
    format: Annotated[Literal["csv", "json"], Query(description="how to write it")] = "json",
    quantity: Annotated[str | None, Query(description="only rows of this quantity")] = None,
    head: Annotated[str | None, Query(description="only rows of this head, as in 8-10 or cross/3-2")] = None,
) -> Response:
    """The rows of a table."""
    results = has.runs[name]
    if table not in results:
        raise missing("the run has no such table", f"Its tables are {', '.join(results)}")
    filters: dict[str, object] = {} if quantity is None else {"quantity": quantity}
    if head is not None:
        id = has.runs.head(name, head)
        filters |= {"kind": id.kind, "layer": id.layer + 1, "head": id.head + 1}
    text = await has.runs.work(lambda: results[table].where(**filters).to_text(format))
    return Response(text, media_type="text/csv" if format == "csv" else "application/json")


@router.get("/models", tags=["texts"])
async def models(has: Has) -> list[ModelSummary]:
    """The models that can read texts."""
    # A large model's fingerprint takes a while, the first time.
    return [ModelSummary(**summary) for summary in await asyncio.to_thread(has.models.describe)]


@router.get("/models/{name:path}", tags=["texts"])
async def model(has: Has, name: Annotated[str, Path(description="a name that /api/models lists")]) -> ModelDetails:
    """A model, loaded if necessary, with its labelled heads in served runs and example texts."""
    return ModelDetails(**await details(has.models, has.runs, has.limits, name))


@router.post("/texts", tags=["texts"], responses={status: {"model": ProblemOut} for status in (403, 408, 413)})
async def add_text(has: Has, sent: TextIn) -> TextOut:
    """Read a text with a model, and describe how the model reads it. Words that do not fit are cut off, and `note`
    says so.
    """
    return TextOut(**await has.texts.add(sent.model, sent.text, sent.second, sent.generate))


@router.get(
    "/texts/{id}/heads/{head:path}",
    tags=["texts"],
    response_class=Response,
    responses={
        200: {
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            "headers": {"X-Shape": {"description": "rows,columns", "schema": {"type": "string"}}},
        }
    },
)
async def text_map(
    has: Has,
    id: Annotated[str, Path(description="as /api/texts answered")],
    head: Annotated[str, Path(description="as in 8-10 or cross/3-2")],
    rows: Annotated[str, Query(description="attending tokens first:end, counted from 0, end excluded; all if not given")] = "",
    columns: Annotated[str, Query(description="attended tokens, in the same form")] = "",
) -> Response:
    """One head's map of a text: little-endian 16-bit numbers row by row, 65535 for a weight of 1."""
    weights = await has.texts.map(id, head, rows, columns)
    shape = f"{weights.shape[0]},{weights.shape[1]}"
    return Response(weights.tobytes(), headers={"X-Shape": shape}, media_type="application/octet-stream")


@router.get("/texts/{id}/differences/{other}", tags=["texts"])
async def text_differences(
    has: Has,
    id: Annotated[str, Path(description="as /api/texts answered")],
    other: Annotated[str, Path(description="the id of another text of the same model")],
) -> DifferencesOut:
    """How differently each head attends in two texts that share most of their words, such as a minimal pair."""
    return DifferencesOut(**await has.texts.differences(id, other))


@router.get("/texts/{id}/influence/{measure}", tags=["texts"])
async def text_influence(
    has: Has,
    id: Annotated[str, Path(description="as /api/texts answered")],
    measure: Annotated[str, Path(description="A, G, G*, rollout or norms")],
) -> InfluenceOut:
    """Influence between the tokens of a text by one measure of the flow study, in every layer."""
    return InfluenceOut(**await has.texts.influence(id, measure))
