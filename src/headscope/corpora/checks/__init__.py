"""The rules of the validator, one module per subject. Levels are those of Universal Dependencies' own validation: 1 is
the layout of the file, 2 the form of its columns, comments and trees, 3 what the guidelines say for all languages.
"""

from __future__ import annotations

from headscope.corpora.checks import graph, layout, mentions, metadata, syntax, values
from headscope.corpora.checks.rules import RULES, Rule, RuleViolation

__all__ = ["RULES", "Rule", "RuleViolation", "graph", "layout", "mentions", "metadata", "syntax", "values"]
