"""The comparison of two annotations, from their documents to scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.paths import kind_of
from headscope.core.suggest import choose_from
from headscope.core.tally import Tally
from headscope.corpora.agreement.counts import COLUMNS, RELATION, counted, pairs
from headscope.corpora.agreement.differences import AnnotationDifference, differences
from headscope.corpora.corpus import Corpus
from headscope.corpora.files import base_name
from headscope.corpora.formats import common_format
from headscope.corpora.inputs import resolve
from headscope.errors import CorpusError, HeadscopeError

if TYPE_CHECKING:
    from headscope.corpora.agreement.scores import AgreementScore, Totals

WORDS = (*COLUMNS, "uas", "uas_nopunct", "las", "las_nopunct", "las_main", "las_main_nopunct", RELATION)
MENTIONS = ("type", "antecedent")
KAPPAS = ("upos", RELATION, "type")
OVERLAPS = ("mentions", "links", "muc", "b_cubed", "ceaf", "b_cubed_chains", "ceaf_chains")
# The mean of MUC, B³ and CEAF: the CoNLL score. MUC is the same with and without singletons.
CONLL = {"conll": ("muc", "b_cubed", "ceaf"), "conll_chains": ("muc", "b_cubed_chains", "ceaf_chains")}


@dataclass(frozen=True)
class AgreementReport:
    """The agreement of two annotations. `agreement["las"]` is the score of that name.

    `relations` are F1 scores by relation, the most frequent first. `alone` counts labels that only one side has, which
    no score compares; `skipped` is what was skipped while reading each side.
    """

    documents: int
    sentences: int
    words: int
    scores: tuple[AgreementScore, ...]
    relations: tuple[AgreementScore, ...]
    differences: tuple[AnnotationDifference, ...]
    alone: dict[str, int]
    skipped: tuple[Tally, Tally]

    def __getitem__(self, name: str) -> AgreementScore:
        for score in self.scores:
            if score.name == name:
                return score
        raise HeadscopeError(f"there is no score {name!r}", choose_from(name, [score.name for score in self.scores], "There are"))


def compare(first: Corpus, second: Corpus, replicates: int = 500, seed: int = 0) -> AgreementReport:
    """The agreement between two annotations of the same documents.

    Precision and recall take the first annotation as the key. Exchanging the two annotations exchanges precision and
    recall and changes nothing else. Intervals resample documents.
    """
    from headscope.corpora.agreement.scores import Totals  # needs numpy, which reading a corpus does not

    totals = Totals(replicates, seed)
    sizes: Counter[str] = Counter()
    differing: list[AnnotationDifference] = []
    for pair in pairs(first, second):
        totals.add(pair.first.id, counted(pair))
        sizes.update(documents=1, sentences=len(pair.first.sentences), words=len(pair.first.words))
        differing += differences(pair)
    return AgreementReport(
        documents=sizes["documents"],
        sentences=sizes["sentences"],
        words=sizes["words"],
        scores=tuple(_scores(totals)),
        relations=tuple(_relations(totals)),
        differences=tuple(differing),
        alone={name: n for name in (*COLUMNS, "head", RELATION, "type") if (n := totals.count(name, "alone"))},
        skipped=(first.skipped, second.skipped),
    )


def read_annotation(name: str | Path, format: str | None = None) -> Corpus:
    """The corpus in a file, or in all CoNLL-U files of a folder."""
    if kind_of(name) != "folder":
        paths = resolve((name,)).paths
    else:
        paths = tuple(sorted(path for path in Path(name).iterdir() if base_name(path).endswith(".conllu")))
        if not paths:
            raise CorpusError(name, None, "there is no .conllu file in this folder", "Name a folder of CoNLL-U files, or a file")
    return Corpus(paths, common_format(paths, format))


def _scores(totals: Totals) -> Iterator[AgreementScore]:
    counted = set(totals.names())
    for name in (*WORDS, *MENTIONS):
        if totals.count(name, "n"):
            yield totals.share(name)
            if name in KAPPAS:
                yield totals.kappa(name)
    yield from (totals.f1(name) for name in OVERLAPS if name in counted)
    yield from (totals.mean_f1(name, parts) for name, parts in CONLL.items() if counted.issuperset(parts))
    if "keyphrases" in counted:
        yield totals.f1("keyphrases")


def _relations(totals: Totals) -> Iterator[AgreementScore]:
    names = [name for name in totals.names() if name.startswith(f"{RELATION} ")]
    frequency = {name: totals.count(name, "first") + totals.count(name, "second") for name in names}
    for name in sorted(names, key=lambda name: (-frequency[name], name)):
        yield replace(totals.f1(name), name=name.removeprefix(f"{RELATION} "))
