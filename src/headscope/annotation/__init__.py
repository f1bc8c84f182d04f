"""Annotation: raw text to CoNLL-U with an installed parser. Everything it writes is marked as automatic."""

from __future__ import annotations

from headscope.annotation.trees import PARSERS, Parser, load_parser
from headscope.annotation.writing import AnnotationRun, annotate

__all__ = ["PARSERS", "AnnotationRun", "Parser", "annotate", "load_parser"]
