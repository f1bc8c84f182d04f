"""Settings of a study of ablation completed from its model and its corpus, or refused."""

from __future__ import annotations

from pathlib import Path

from headscope.corpora import Corpus
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.quantities import by_head
from headscope.results.results import Results
from headscope.studies.ablation.spec import OWN, SCORES, AblationSpec
from headscope.studies.execute import require_length

_LAYER = {"upos": "parts of speech", "xpos": "parts of speech", "keyphrases": "keyphrases"}


def completed(spec: AblationSpec, model: Model, corpus: Corpus, function: bool = False) -> AblationSpec:
    """The settings with nothing left open, or an error if this model cannot be studied so.

    `function` says whether there is a function of the user's to score by.
    """
    if model.objective is None or model.objective not in SCORES:
        raise RunError(f"{spec.model} was loaded without what it predicts with", "Load it with head=True")
    if (spec.score == OWN) != function:
        raise RunError("a score of your own and a function go together", 'Give score="own" and the function')
    require_length(model, spec)
    if model.objective == "classes" and not corpus.layers({"labels"}):
        problem = f"{spec.model} is a classifier, whose score needs labels, and {', '.join(spec.corpus)} has none"
        raise RunError(problem, "Use a corpus with a label for each text (JSON lines or a table)")
    tags = spec.tags or model.tagging
    if spec.tags is not None and (model.tagging is None or (spec.tags == "keyphrases") != (model.tagging == "keyphrases")):
        raise RunError(f"{spec.model} does not tag words by {spec.tags}", "Leave out --tags, or use a model that was trained to do so")
    if tags is not None and not corpus.layers({_LAYER[tags]}):
        problem = f"{spec.model} tags words by {tags}, and {', '.join(spec.corpus)} has no {_LAYER[tags]}"
        raise RunError(problem, "Use another corpus, or --tags")
    if spec.run is not None:  # better found now than after the first pass
        results = Results.open_run(Path(spec.run))
        for name in spec.by:
            by_head(results, name.removeprefix("-"), model.layout)
    return spec.resolved(model.objective, model.encoder_decoder, corpus.pairs, tags)
