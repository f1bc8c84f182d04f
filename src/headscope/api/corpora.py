"""Corpora: annotating raw texts, checking files, counting what is in them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from headscope.corpora import Corpus, OnError, read
from headscope.corpora.inputs import names_files
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.corpora import Finding, Stats
    from headscope.engine.shards import Progress

Texts = Any  # what `read` takes: a corpus, names of files, a list of texts, a table, a dataset, ...
CHECKED = ("conllu", "conll2012")


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

    `parser` is `spacy` or `stanza`; `pipeline` a name, a folder, or a pipeline that is loaded already. The annotated
    texts are written to `out`, a CoNLL-U file, and read from there; without `out` they stay in memory.

    >>> import headscope as hs
    >>> corpus = hs.annotate("notes.txt", parser="spacy")  # doctest: +SKIP
    >>> hs.run("mini", corpus, ["relations"])  # doctest: +SKIP
    """
    from headscope.annotation import annotate as write
    from headscope.annotation import load_parser
    from headscope.annotation.writing import raw_texts

    corpus = raw_texts(texts, format=format, on_error=on_error)
    with TemporaryDirectory(prefix="headscope-") as folder:
        path = Path(out) if out is not None else Path(folder) / "annotated.conllu"
        write(corpus, load_parser(parser, pipeline, language), path, overwrite, progress)
        return read(path) if out is not None else Corpus.of(read(path))


def check_corpus(*texts: Texts, level: int = 3, ignore: Collection[str] = ()) -> list[Finding]:
    """What is wrong in annotated files, or in token lists of `conllu`, with file, line, value and rule; level 1 is the
    format, 3 everything (docs/checking.md).

    >>> import headscope as hs
    >>> [finding for finding in hs.check_corpus("sampler") if not finding.note]
    []
    """
    from headscope.corpora import check

    if all(isinstance(name, str | Path) for name in texts):
        return check(texts, level, ignore)
    corpus = read(*texts)
    if corpus.format not in CHECKED:
        raise HeadscopeError(f"{', '.join(corpus.names)} (read as {corpus.format}) has no lines to check", f"Check {' or '.join(CHECKED)}")
    return check(corpus.paths, level, ignore)


def corpus_stats(corpus: Texts = "sampler") -> Stats:
    """What is in a corpus, counted in one pass: documents, sentences, words, labels, mentions, keyphrases.

    >>> import headscope as hs
    >>> stats = hs.corpus_stats("sampler")
    >>> stats.sentences, stats.words
    (347, 6026)
    """
    from headscope.corpora import stats

    return stats(read(corpus))


def corpus_or_names(texts: Texts, on_error: OnError = "raise") -> Texts:
    """Texts in memory as a corpus; a corpus and names of files, which results record, are returned unchanged."""
    return texts if isinstance(texts, Corpus) or names_files(texts) else read(texts, on_error=on_error)
