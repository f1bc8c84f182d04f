from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headscope.corpora import read, stats

# The numbers of documents, sentences and mentions in data/README.md, or counted in the files with grep. None: not
# stated.
COUNTS: dict[str, tuple[int, int | None, int]] = {
    "ud/en_ewt-ud-train.conllu.xz": (540, 12_544, 0),
    "ud/en_ewt-ud-dev.conllu.xz": (318, 2_001, 0),
    "ud/en_gum-ud-dev.conllu.xz": (30, 1_575, 7_897),
    "ud/en_gum-r2.5-ud-dev.conllu.xz": (18, 784, 0),
    "ud/de_gsd-ud-dev.conllu.xz": (799, 799, 0),
    "ud/fi_tdt-ud-dev.conllu.xz": (76, 1_364, 0),  # by sent_id
    "ud/ja_gsd-ud-dev.conllu.xz": (507, 507, 0),
    "stanford/gum5_sd_train.conll.xz": (78, 3_600, 0),
    "stanford/gum5_sd_dev.conll.xz": (18, 784, 0),
    "coref/ontogum-train.v4_gold_conll.xz": (177, 10_224, 23_320),
    "coref/ontogum-dev.v4_gold_conll.xz": (30, 1_575, 3_818),
    "coref/winobias-dev-type1-pro.v4_auto_conll.xz": (396, 396, 801),
    "coref/gap-development.tsv.xz": (2_000, None, 6_000),
    "probing/ewt_srl-dev.gold_conll.xz": (297, 1_965, 0),
    "probing/wnut17-train.conll.xz": (3_394, 3_394, 0),
    "probing/wnut17-dev.conll.xz": (1_009, 1_009, 0),
    "probing/uds_spr-train.jsonl.xz": (2_191, 2_191, 0),
    "probing/uds_spr-dev.jsonl.xz": (291, 291, 0),
    "text/enwiki_paragraph_pairs.jsonl.xz": (3_000, None, 0),
    "text/mnli_dev_matched_7000.jsonl.xz": (7_000, None, 0),
    "text/sst2-train.tsv.xz": (6_920, 6_920, 0),
    "text/sst2-dev.tsv.xz": (872, 872, 0),
    "text/cola-train.tsv.xz": (8_551, 8_551, 0),
    "text/cola-dev.tsv.xz": (527, 527, 0),
    "keyphrase/inspec-train.jsonl.xz": (1_000, None, 0),
    "keyphrase/inspec-dev.jsonl.xz": (500, None, 0),
    "keyphrase/kpcrowd.jsonl.xz": (500, None, 0),
}
# Multi-word tokens and empty nodes, counted with grep.
RANGES_AND_NODES = {
    "ud/en_ewt-ud-train.conllu.xz": (2_614, 37),
    "ud/en_ewt-ud-dev.conllu.xz": (359, 4),
    "ud/en_gum-ud-dev.conllu.xz": (517, 12),
    "ud/de_gsd-ud-dev.conllu.xz": (164, 0),
    "ud/fi_tdt-ud-dev.conllu.xz": (18, 22),
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_counts_of_each_corpus_are_the_known_ones(data: Path, name: str) -> None:
    documents, sentences, mentions = COUNTS[name]
    corpus = read(data / name)
    result = stats(corpus)
    assert (result.documents, result.mentions) == (documents, mentions)
    assert sentences is None or result.sentences == sentences
    ranges, nodes = RANGES_AND_NODES.get(name, (0, 0))
    assert result.skipped.counts["multi-word tokens (their words are read)"] == ranges
    assert result.skipped.counts["empty nodes"] == nodes
    assert not [reason for reason in result.skipped.counts if " skipped" in reason]
    assert corpus.pairs == ("pairs" in name or "mnli" in name)
    if name.startswith("keyphrase/"):
        assert result.keyphrases > result.documents


def test_sentences_with_several_roots_in_the_stanford_data_are_counted(data: Path) -> None:
    assert stats(read(data / "stanford/gum5_sd_train.conll.xz")).skipped.counts == {
        "sentences with more than one root (read nevertheless)": 3
    }


# Counted with cut, sort and uniq.
LABELS = {
    "text/sst2-dev.tsv.xz": {"0": 428, "1": 444},
    "text/cola-dev.tsv.xz": {"0": 162, "1": 365},
    "text/mnli_dev_matched_7000.jsonl.xz": {"entailment": 2504, "neutral": 2179, "contradiction": 2317},
}


@pytest.mark.parametrize("name", LABELS)
def test_the_counts_of_labels_are_the_known_ones(data: Path, name: str) -> None:
    assert Counter(document.label for document in read(data / name)) == LABELS[name]


def test_parses_and_speakers_of_ontogum_are_read(data: Path) -> None:
    sentences = [sentence for document in read(data / "coref/ontogum-dev.v4_gold_conll.xz") for sentence in document.sentences]
    assert sentences[0].parse == "(TOP (NP (NN Introduction)))"
    assert all(sentence.parse and sentence.parse.count("(") == sentence.parse.count(")") for sentence in sentences)
    assert sum(sentence.speaker is not None for sentence in sentences) == 835
