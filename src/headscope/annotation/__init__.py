"""Raw text to CoNLL-U with an installed parser, for those who have no treebank: everything it writes is marked as automatic."""

from __future__ import annotations

from headscope.annotation.parser import PARSERS, Parser, load_parser
from headscope.annotation.writing import AnnotationRun, annotate

__all__ = ["PARSERS", "AnnotationRun", "Parser", "annotate", "load_parser"]
