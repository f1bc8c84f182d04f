"""A small spaCy pipeline, trained briefly on the trees of the embedded corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headscope.corpora import read

if TYPE_CHECKING:
    from spacy.language import Language


@pytest.fixture(scope="session")
def nlp() -> Language:
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example
    from thinc.api import fix_random_seed

    fix_random_seed(0)
    nlp = spacy.blank("en")
    made: dict[str, dict[str, object]] = {
        "tok2vec": {"model": {"@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, "width": 32, "depth": 2,
                              "embed_size": 500, "window_size": 1, "maxout_pieces": 2, "subword_features": True}},
    }  # fmt: skip
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32, "upstream": "tok2vec"}
    made["tagger"] = made["morphologizer"] = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}}
    made["parser"] = {"model": {"@architectures": "spacy.TransitionBasedParser.v2", "state_type": "parser", "extra_state_tokens": False,
                                "hidden_width": 32, "maxout_pieces": 2, "use_upper": True, "tok2vec": listener}}  # fmt: skip
    for name, config in made.items():
        nlp.add_pipe(name, config=config)
    nlp.meta |= {"name": "tiny", "version": "0.1.0"}
    examples = []
    for document in read("sampler"):
        for sentence in document.sentences[:12]:
            words = sentence.words
            spaces = [word.space_after for word in words]
            gold = Doc(
                nlp.vocab,
                words=[word.form for word in words],
                spaces=spaces,
                tags=[word.xpos or "" for word in words],
                pos=[word.upos or "" for word in words],
                heads=[word.head - 1 if word.head else place for place, word in enumerate(words)],
                deps=[(word.relation or "") if word.head else "ROOT" for word in words],
            )
            examples.append(Example(Doc(nlp.vocab, words=[word.form for word in words], spaces=spaces), gold))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(3):
        for start in range(0, len(examples), 24):
            nlp.update(examples[start : start + 24], sgd=optimizer)
    return nlp


@pytest.fixture(scope="session")
def pipeline(nlp: Language, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the pipeline is saved."""
    folder = tmp_path_factory.mktemp("pipelines") / "tiny"
    nlp.to_disk(folder)
    return folder
