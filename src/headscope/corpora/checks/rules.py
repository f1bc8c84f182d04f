"""The rules of the validator and their registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Rule:
    """A condition that holds in a valid file. A violation of a `note` should be reviewed but may be correct."""

    name: str
    level: int
    asks: str
    remedy: str
    note: bool = False

    def at(self, line: int, problem: str) -> RuleViolation:
        """The violation of the rule at a line."""
        return RuleViolation(self, line, problem)


class RuleViolation(NamedTuple):
    """A violated rule, the line of the file, and the problem."""

    rule: Rule
    line: int
    text: str


RULES: dict[str, Rule] = {}


def rule(name: str, level: int, asks: str, remedy: str, note: bool = False) -> Rule:
    """Register a new rule. Rules are defined in the modules that check them."""
    assert name not in RULES
    RULES[name] = Rule(name, level, asks, remedy, note)
    return RULES[name]
