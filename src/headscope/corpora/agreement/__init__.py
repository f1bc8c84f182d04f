"""Agreement between two annotations of the same text: scores with intervals over documents, and every difference."""

from __future__ import annotations

from headscope.corpora.agreement.comparison import AgreementReport, compare, read_annotation
from headscope.corpora.agreement.differences import AnnotationDifference

__all__ = ["AgreementReport", "AnnotationDifference", "compare", "read_annotation"]
