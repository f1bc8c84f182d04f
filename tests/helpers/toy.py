"""A study that is not part of headscope: it counts the tokens of sentences, with one job per document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import Field

from headscope.core.state import States
from headscope.corpora import read
from headscope.drawing.theme import new_figure, theme
from headscope.encoding.texts import Encoded, Encoder
from headscope.results.columns import StateColumns
from headscope.results.results import Results
from headscope.results.specification import Role
from headscope.results.table import Table
from headscope.stats.resampled import mean
from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyContext, StudyFigure, Work
from headscope.studies.execute import require_length
from headscope.studies.spec import StudySpec


class ToySpec(StudySpec):
    least: int = Field(2, ge=1, description="words that a sentence must have")
    without: Annotated[str | None, Role.CONTENT] = Field(None, description="file of words; sentences with one of them are skipped")
    author: Annotated[str, Role.NEUTRAL] = Field("nobody", description="who counts")


class ToyWork(Work):
    def __init__(self, spec: ToySpec, context: StudyContext) -> None:
        super().__init__(spec, context)
        require_length(self.model, spec)
        words = read(spec.without) if spec.without else None
        self.contents = {"without": words.hash() if words is not None else None}
        self._without = {word.form for document in words or () for word in document.words}

    def jobs(self, merged: Callable[[], States]) -> Iterator[list[Encoded]]:
        encoder = Encoder(self.model.tokenizer, max_length=self.spec.max_length)
        for document in self.context.corpus:
            job = list(encoder.texts([document], self.counts.dropped))
            for text in job:
                self.counts.add(text)
            yield job

    def do(self, job: list[Encoded]) -> States:
        kept = StateColumns()
        chosen = [text for text in job if len(text.words) >= self.spec.least and not self._without & {word.form for word in text.words}]
        kept.add_words("document", [text.document for text in chosen])
        kept.add("tokens", [len(text) for text in chosen])
        return {"toy": kept.state}

    def tables(self, states: States) -> dict[str, Table]:
        documents, tokens = StateColumns(states["toy"]).words("document"), StateColumns(states["toy"]).numbers("tokens")
        found = mean(tokens[:, None], documents, self.spec.replicates, self.spec.seed)
        numbers = {name: column.tolist() for name, column in found._asdict().items() if name != "p"}
        return {"summary": Table.of({"what": ["tokens"], **numbers}), "toy": Table.of({"document": documents, "tokens": tokens.tolist()})}

    def measured(self) -> dict[str, Any]:
        return {"least": self.spec.least}


class ToyStudy(Study):
    name, verb, function, folder, spec, files = "toy", "toy", "toy", "toy", ToySpec, ("without",)
    help = "Count the tokens of sentences.\n\n    headscope toy --out TOY\n    headscope toy --least 5 --without words.txt --out TOY"
    title, about, published = "How long sentences are", "Tokens per sentence.", "Published: nowhere."
    figures = (StudyFigure("toy_lengths", "how many sentences have how many tokens", "lengths", "toy", "toy", "Sentences", "All of them."),)
    compared = (ComparedTable("summary", ("what",), {"value": BOUNDS}, "tokens of sentences"),)

    def work(self, spec: Any, context: StudyContext) -> ToyWork:
        return ToyWork(spec, context)

    def findings(self, results: Results) -> list[str]:
        return [f"A sentence has {row['value']:.1f} tokens on average." for row in results["summary"]]

    def draw(self, figure: StudyFigure, results: Results, *args: Any, **choices: Any) -> Any:
        with theme():
            drawn = new_figure(4, 3)
            drawn.subplots().hist(results["toy"]["tokens"])
        return self.captioned(figure, drawn)
