"""The sizes of a corpus as they are printed: one line a quantity, None where there is nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.core.automatic import summed_up
from headscope.corpora import Corpus, Stats
from headscope.corpora.coreference_stats import CoreferenceStats
from headscope.corpora.distribution import Distribution
from headscope.corpora.mentions import KINDS

if TYPE_CHECKING:
    from headscope.results.counts import Counts

SPREAD = "mean [smallest, lower quartile, median, upper quartile, largest]"
Rows = dict[str, str | None]


def overview(counted: Stats) -> Rows:
    """How many there are of each thing, how large they are, and where they stand; always the same rows in the same
    order.
    """
    dependencies, phrases = counted.dependencies, counted.phrases
    return {
        "documents": _number(counted.documents),
        "annotation": summed_up(counted.parsers),
        "paragraphs": _number(counted.paragraphs),
        "sentences": _number(counted.sentences),
        "words": _number(counted.words),
        "without punctuation": _number(counted.words - counted.punctuation) if counted.punctuation else None,
        "words a sentence": _spread(counted.lengths),
        "dependencies": _number(dependencies.n),
        "head to the right": f"{100 * dependencies.right:.1f}%" if dependencies.n else None,
        "words to the head": _spread(dependencies.distances),
        **_coreference(counted.coreference),
        "keyphrases": _number(counted.keyphrases),
        "keyphrases a document": _spread(phrases.per_document) if counted.keyphrases else None,
        "words a keyphrase": _spread(phrases.lengths),
        "keyphrases in the text": _share(phrases.found, counted.keyphrases),
        "labelled spans": ", ".join(f"{n:,} {task}" for task, n in sorted(counted.edges.tasks.items())) or None,
        "words a labelled span": _spread(counted.edges.lengths),
    }


def encoding(corpus: Corpus, model: str, unit: str | None, max_length: int) -> tuple[str, Rows, Counts]:
    """What a run over a corpus would read: what it would be a run of, how many texts and tokens, and all that is
    counted.
    """
    from headscope.engine.shards import encoder_for
    from headscope.engine.spec import make_spec
    from headscope.models.load import load_tokenizer
    from headscope.results.counts import count

    spec = make_spec({"model": model, "unit": unit, "max_length": max_length}).resolved(corpus.pairs)
    counts = count(corpus, encoder_for(spec, load_tokenizer(model)))
    percent = 100 * counts.split_words / counts.words if counts.words else 0.0
    rows: Rows = {
        "texts": f"{counts.texts:,}",
        "tokens": f"{counts.tokens:,}",
        "split words": f"{counts.split_words:,} of {counts.words:,} ({percent:.1f}%)",
        "unknown tokens": f"{counts.unknown:,} of {counts.word_tokens:,} ({counts.unknown_share:.1%})",
    }
    return f"a run of {model} over each {spec.unit}, up to {max_length} tokens", rows, counts


def _coreference(counted: CoreferenceStats) -> Rows:
    linked, back = counted.words_back.n, counted.sentences_back.counts
    return {
        "mentions": _number(counted.mentions),
        "words a mention": _spread(counted.lengths),
        **{f"{kind}s": _share(counted.kinds[kind], counted.kinds.total()) for kind in KINDS},
        "entities": _number(counted.entities),
        "singletons": _share(counted.singletons, counted.entities),
        "chains": _share(counted.chains.n, counted.entities),
        "mentions in chains": _share(counted.coreferent, counted.mentions),
        "mentions a chain": _spread(counted.chains),
        "antecedent, words back": _spread(counted.words_back),
        "antecedent, sentences back": _spread(counted.sentences_back),
        "in the same sentence": _share(back[0], linked),
        "in the sentence before": _share(back[1], linked),
        "further back": _share(linked - back[0] - back[1], linked),
    }


def _number(n: int) -> str | None:
    return f"{n:,}" if n else None


def _spread(numbers: Distribution) -> str | None:
    return f"{numbers.mean:.1f} [{' '.join(f'{numbers.quantile(q / 4):g}' for q in range(5))}]" if numbers.n else None


def _share(n: int, total: int) -> str | None:
    return f"{n:,} ({100 * n / total:.1f}%)" if total else None
