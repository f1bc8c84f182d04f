"""Corpora: annotating raw texts, checking files, counting what is in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from headscope.corpora import Corpus, OnError, read

if TYPE_CHECKING:
    from headscope.corpora import Finding, Stats
    from headscope.engine.shards import Progress

Texts = Corpus | str | Path | Sequence[str | Path]


def annotate(
    texts: Texts,
    out: str | Path | None = None,
    *,
    parser: str | None = None,
    pipeline: Any = None,
    language: str = "en",
    format: str | None = None,
    on_error: OnError = "raise",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Corpus:
    """Raw texts with sentences, words, tags and trees as an installed parser finds them, marked as automatic
    (docs/annotate.md).

    `parser` is `spacy` or `stanza`; `pipeline` a name, a folder, or a pipeline that is loaded already. They are written
    to `out`, a CoNLL-U file, and read from there; without it they stay in memory.

    >>> import headscope as hs
    >>> corpus = hs.annotate("notes.txt", parser="spacy")  # doctest: +SKIP
    >>> hs.run("mini", corpus, ["relations"])  # doctest: +SKIP
    """
    from headscope.annotation import annotate as write
    from headscope.annotation import load_parser
    from headscope.annotation.writing import raw_texts

    names = [texts] if isinstance(texts, str | Path) else texts
    opened = nullcontext(names) if isinstance(names, Corpus) else raw_texts(names, format, on_error)
    with TemporaryDirectory(prefix="headscope-") as folder, opened as corpus:
        path = Path(out) if out is not None else Path(folder) / "annotated.conllu"
        write(corpus, load_parser(parser, pipeline, language), path, overwrite, progress)
        return read(path) if out is not None else Corpus.of(read(path))


def check_corpus(*paths: str | Path, level: int = 3, ignore: Collection[str] = ()) -> list[Finding]:
    """What is wrong in annotated files, with file, line, value and rule; level 1 is the format, 3 everything
    (docs/checking.md).

    >>> import headscope as hs
    >>> [finding for finding in hs.check_corpus("sampler") if not finding.note]
    []
    """
    from headscope.corpora import check

    return check(paths, level, ignore)


def corpus_stats(corpus: Texts = "sampler") -> Stats:
    """What is in a corpus, counted in one pass: documents, sentences, words, labels, mentions, keyphrases.

    >>> import headscope as hs
    >>> stats = hs.corpus_stats("sampler")
    >>> stats.sentences, stats.words
    (347, 6026)
    """
    from headscope.corpora import stats

    return stats(opened(corpus))


def opened(named: Texts) -> Corpus:
    """A corpus that is given as it is, or by its files."""
    if isinstance(named, Corpus):
        return named
    return read(named) if isinstance(named, str | Path) else read(*named)
