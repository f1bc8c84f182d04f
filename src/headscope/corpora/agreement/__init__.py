"""Agreement between two annotations of the same text: scores with intervals over documents, and every difference."""

from __future__ import annotations

from headscope.corpora.agreement.comparison import Agreement, compare, read_annotation
from headscope.corpora.agreement.differences import Difference

__all__ = ["Agreement", "Difference", "compare", "read_annotation"]
