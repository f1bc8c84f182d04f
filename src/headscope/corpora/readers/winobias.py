"""WinoBias (Zhao et al. 2018) in CoNLL-2012 columns: sentences with a pronoun and two occupations, one of which it
refers to.

The files annotate only the occupation that is meant. This reader finds the other one, so that there are two candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from headscope.core.document import Document, Mention
from headscope.corpora.readers.conll2012 import read_conll2012
from headscope.corpora.resolution.mentions import listed
from headscope.corpora.source import Source

# The forty occupations of the data set.
OCCUPATIONS = listed(
    "accountant analyst assistant attendant auditor baker carpenter cashier ceo chief cleaner clerk construction_worker cook counselor "
    "designer developer driver editor farmer guard hairdresser housekeeper janitor laborer lawyer librarian manager mechanic mover nurse "
    "physician receptionist salesperson secretary sheriff supervisor tailor teacher writer"
)
_NAMES = {tuple(name.split("_")) for name in OCCUPATIONS}
_DETERMINERS = frozenset({"the", "a", "an"})
_PRO = re.compile(r"(?:^|[^a-z])pro(?:[^a-z]|stereotyp)|stereotyp")
_ANTI = re.compile(r"(?:^|[^a-z])anti(?:[^a-z]|stereotyp)")


def read_winobias(source: Source) -> Iterator[Document]:
    """The documents, each with the other occupation as a separate entity; `subset` is `pro` or `anti`, from the file
    names.
    """
    for document in read_conll2012(source):
        other = _other(document)
        if other is None:
            source.tally.add("documents without a second occupation", document.id)
        mentions = sorted((*document.mentions, *([other] if other else [])), key=lambda mention: (mention.start, mention.end))
        yield replace(document, mentions=tuple(mentions), subset=_subset(f"{source.name} {document.id}".lower()))


def _other(document: Document) -> Mention | None:
    """The first occupation, with its article, that no annotated mention contains."""
    forms = [word.form.lower() for word in document.words]
    named = {tuple(forms[mention.start : mention.end])[1:] for mention in document.mentions}
    taken = {place for mention in document.mentions for place in range(mention.start, mention.end)}
    for start, form in enumerate(forms):
        for size in (2, 1):
            name = tuple(forms[start + 1 : start + 1 + size])
            span = range(start, start + 1 + size)
            if form in _DETERMINERS and len(name) == size and name in _NAMES - named and taken.isdisjoint(span):
                return Mention("other", span.start, span.stop, "person")
    return None


def _subset(names: str) -> str | None:
    return "anti" if _ANTI.search(names) else "pro" if _PRO.search(names) else None
