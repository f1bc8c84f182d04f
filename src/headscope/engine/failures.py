"""Texts on which a model fails: found one by one, left out, and remembered beside the states of their shard.

Memory that ran out, a tokenizer that does not fit and a device that gave up are not the fault of a text: those
errors end the run. So does a model that fails on everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headscope.core.state import State, States
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded
from headscope.errors import MeasureError, RunError
from headscope.results.columns import StateColumns

if TYPE_CHECKING:
    from headscope.engine.compute import ShardRunner
    from headscope.models.model import Model

NAME = "failures"  # among the states of a shard
ROUNDS = 4  # how often a shard is tried without the texts that were found to fail
NONE_WENT_WELL = 64  # texts that fail before any goes well: then it is not the texts
MOST = 10_000  # texts that may be left out of a run
NAMED = 8  # texts that a line names


class TextError(RunError):
    """A model that failed on some texts, and may not on others; `cause` is what it said."""

    def __init__(self, problem: str, cause: str) -> None:
        self.cause = cause
        super().__init__(problem)


class DeviceError(RunError):
    """A device that gave up: nothing more can be computed on it by this process."""


@dataclass(frozen=True)
class Failure:
    """A text that was left out, and what the model said."""

    text: str
    error: str


class FaultTolerantRunner:
    """A shard runner that leaves out the texts on which its model fails."""

    def __init__(self, runner: ShardRunner) -> None:
        self._runner = runner
        self._well = False  # whether any text has gone well
        self._failed = 0

    def __call__(self, texts: Sequence[Encoded], measures: frozenset[str]) -> States:
        """The states of a shard, as if the texts that fail were not in it, and which ones these are under
        `failures`.
        """
        failed: dict[str, str] = {}
        for tries in range(ROUNDS):
            rest = [text for text in texts if text.id not in failed]
            try:
                states = self._runner(rest, measures)
                break
            except TextError as error:
                self._require_sound(measures, error)
                if tries == ROUNDS - 1:
                    raise
                failed |= self._failing(rest, measures)
        self._well = self._well or len(failed) < len(texts)
        self._failed += len(failed)
        if not self._well and self._failed >= NONE_WENT_WELL:
            raise RunError(
                f"{self._runner.model.name} failed on all of the first {self._failed} texts (first: {next(iter(failed))}: "
                f"{next(iter(failed.values()))})",
                "Check the model, and that the corpus is what it reads",
            )
        return {**states, NAME: _state(failed)}

    def _failing(self, texts: Sequence[Encoded], measures: frozenset[str]) -> dict[str, str]:
        """Which texts fail, each on its own, batch by batch."""
        planned = batches(texts, self._runner.batch_tokens)
        return {text.id: cause for batch in planned for text, cause in self._narrowed(batch, measures)}

    def _narrowed(self, batch: Sequence[Encoded], measures: frozenset[str]) -> Iterator[tuple[Encoded, str]]:
        try:
            self._runner(batch, measures)
        except TextError as error:
            if len(batch) == 1:
                yield batch[0], error.cause
                return
            half = len(batch) // 2
            found = [*self._narrowed(batch[:half], measures), *self._narrowed(batch[half:], measures)]
            if not found:  # it is these texts together
                raise RunError(error.problem, "Use another --batch-tokens") from error
            yield from found

    def _require_sound(self, measures: frozenset[str], error: TextError) -> None:
        """Raise the error if, before any text went well, the model fails on an ordinary text, too."""
        if self._well:
            return
        try:
            with suppress(MeasureError):  # which may miss something in a text without annotation
                self._runner([ordinary(self._runner.model)], measures)
        except TextError:
            raise RunError(error.problem, "It fails on any text: check the model, and that its tokenizer belongs to it") from error


def ordinary(model: Model) -> Encoded:
    """A text that any model can read."""
    from headscope.engine.typed_text import typed

    return typed(model, "The cat sat on a mat", max_length=16).encoded


def _state(failed: Mapping[str, str]) -> State:
    kept = StateColumns()
    if failed:
        kept.say("texts", list(failed))
        kept.say("errors", list(failed.values()))
    return kept.state


def failures(states: States) -> list[Failure]:
    """What was left out of the shards of these states, in their order."""
    kept = StateColumns(states[NAME]) if NAME in states else StateColumns()
    return [Failure(*pair) for pair in zip(kept.words("texts"), kept.words("errors"), strict=True)]


def line(failed: Sequence[Failure], model: str) -> str:
    """What is said of texts that were left out."""
    return f"{len(failed)} texts left out, on which {model} failed: {_named(failed)}"


def error(failed: Sequence[Failure], model: str, kept: bool) -> RunError:
    """What is said instead of results, when texts may not be left out."""
    texts = "a text" if len(failed) == 1 else f"{len(failed)} texts"
    remedy = "--resume --on-error skip goes on without them, and computes nothing again" if kept else "Leave them out with --on-error skip"
    done = "; the rest is done and kept" if kept else ""
    return RunError(f"{model} failed on {texts}: {_named(failed)}{done}", f"{remedy}. Or mend the corpus, and start afresh")


def _named(failed: Sequence[Failure]) -> str:
    named = "; ".join(f"{one.text} ({one.error})" for one in failed[:NAMED])
    more = f"; and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
    return named + more


__all__ = ["MOST", "DeviceError", "Failure", "FaultTolerantRunner", "TextError", "error", "failures", "line", "ordinary"]
