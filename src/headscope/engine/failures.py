"""Texts on which a model fails: they are found one by one, skipped, and recorded with the states of their shard.

Running out of memory, a wrong tokenizer and a failed device are not faults of a text: these errors end the run. So does
a model that fails on every text.
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

NAME = "failures"  # the key among the states of a shard
ROUNDS = 4  # how often a shard is tried, each time without the texts that have failed
NONE_WENT_WELL = 64  # failing texts before any succeeds, after which the texts are not to blame
MOST = 10_000  # texts that may be skipped in a run
NAMED = 8  # texts that a message names


class TextError(RunError):
    """A failure of the model on some texts, which may not affect others; `cause` is its message."""

    def __init__(self, problem: str, cause: str) -> None:
        self.cause = cause
        super().__init__(problem)


class DeviceError(RunError):
    """A failure of the device, on which this process cannot compute any more."""


@dataclass(frozen=True)
class Failure:
    """A skipped text, and the model's error message."""

    text: str
    error: str


class FaultTolerantRunner:
    """A shard runner that skips the texts on which its model fails."""

    def __init__(self, runner: ShardRunner) -> None:
        self._runner = runner
        self._well = False  # whether any text has succeeded
        self._failed = 0

    def __call__(self, texts: Sequence[Encoded], measures: frozenset[str]) -> States:
        """The states of a shard without its failing texts, which are listed under `failures`."""
        failed: dict[str, str] = {}
        for tries in range(ROUNDS):
            rest = [text for text in texts if text.id not in failed] if failed else texts
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
        """The texts that fail on their own, found batch by batch."""
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
            if not found:  # the texts fail only together
                raise RunError(error.problem, "Use another --batch-tokens") from error
            yield from found

    def _require_sound(self, measures: frozenset[str], error: TextError) -> None:
        """Raise the error if no text has succeeded yet and the model also fails on an ordinary text."""
        if self._well:
            return
        try:
            with suppress(MeasureError):  # measures may lack something in a text without annotation
                self._runner([ordinary(self._runner.model)], measures)
        except TextError:
            raise RunError(error.problem, "It fails on any text: check the model, and that the tokenizer belongs to it") from error


def ordinary(model: Model) -> Encoded:
    """A text that any model can read."""
    from headscope.engine.typed_text import typed

    return typed(model, "The cat sat on a mat", max_length=16).encoded


def _state(failed: Mapping[str, str]) -> State:
    kept = StateColumns()
    if failed:
        kept.add_words("texts", list(failed))
        kept.add_words("errors", list(failed.values()))
    return kept.state


def failures(states: States) -> list[Failure]:
    """The skipped texts of the shards of these states, in order."""
    kept = StateColumns(states[NAME]) if NAME in states else StateColumns()
    return [Failure(*pair) for pair in zip(kept.words("texts"), kept.words("errors"), strict=True)]


def line(failed: Sequence[Failure], model: str) -> str:
    """The line about skipped texts."""
    return f"{len(failed)} texts skipped, on which {model} failed: {_named(failed)}"


def error(failed: Sequence[Failure], model: str, kept: bool) -> RunError:
    """The error if texts fail and may not be skipped."""
    texts = "a text" if len(failed) == 1 else f"{len(failed)} texts"
    remedy = "--resume --on-error skip continues without them and computes nothing again" if kept else "Skip them with --on-error skip"
    done = "; the other texts are finished and kept" if kept else ""
    return RunError(f"{model} failed on {texts}: {_named(failed)}{done}", f"{remedy}. Or fix the corpus, and start again")


def _named(failed: Sequence[Failure]) -> str:
    named = "; ".join(f"{one.text} ({one.error})" for one in failed[:NAMED])
    more = f"; and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
    return named + more


__all__ = ["MOST", "DeviceError", "Failure", "FaultTolerantRunner", "TextError", "error", "failures", "line", "ordinary"]
