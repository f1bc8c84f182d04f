"""What a rule of the validator is, and the register of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Rule:
    """Something that holds in a sound file. What breaks a `note` deserves a look, and may be right all the same."""

    name: str
    level: int
    asks: str
    remedy: str
    note: bool = False

    def at(self, line: int, problem: str) -> RuleViolation:
        """The rule as broken at a line."""
        return RuleViolation(self, line, problem)


class RuleViolation(NamedTuple):
    """A rule, the line of the file where it is broken, and how."""

    rule: Rule
    line: int
    text: str


RULES: dict[str, Rule] = {}


def rule(name: str, level: int, asks: str, remedy: str, note: bool = False) -> Rule:
    """A new rule, entered in the register. Modules name their rules where they check them."""
    assert name not in RULES
    RULES[name] = Rule(name, level, asks, remedy, note)
    return RULES[name]
