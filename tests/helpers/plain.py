"""Slow plain implementations of the measures: each quantity of one text and one head, by loops, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import assume
from numpy.typing import NDArray

from headscope.core.batch import CLS, SEP, WORD, stack
from headscope.core.hashing import hash64
from headscope.measures import (
    Coreference,
    Distances,
    Entropy,
    Keywords,
    Measure,
    Positions,
    Pronouns,
    Relations,
    Retrieval,
    Saliency,
    Sequences,
    Sinks,
    SpanningTrees,
    Tokens,
)
from headscope.measures.distances import sampled
from headscope.measures.retrieval import other_passage
from headscope.measures.sequences import shuffled_places
from helpers.worlds import Text

Map = NDArray[np.float64]
Chosen = Callable[[str, int], bool]
# The sum over rows and the number of rows; None if the quantity is undefined for the text.
Value = tuple[float, float] | None

GROUPS: dict[str, Chosen] = {
    "all": lambda form, role: True,
    "cls": lambda form, role: role == CLS,
    "sep": lambda form, role: role == SEP,
    "punct": lambda form, role: role == WORD and form in {".", ","},
    "word": lambda form, role: role == WORD,
    "=the|a": lambda form, role: role == WORD and form.lower() in {"the", "a"},
}


def members(text: Text, name: str) -> list[int]:
    return [i for i, (form, role) in enumerate(zip(text.forms, text.roles, strict=True)) if GROUPS[name](form, role)]


def positions(measure: Positions, text: Text, a: Map) -> dict[str, Value]:
    n = len(a)
    values: dict[str, Value] = {}
    for offset in measure.offsets:
        total, rows = 0.0, 0
        for i in range(n):
            if 0 <= i + offset < n:
                total += a[i, i + offset]
                rows += 1
        name = {-1: "previous", 0: "self", 1: "next"}.get(offset, f"offset_{offset:+d}")
        counted = n if measure.denominator == "n" else rows
        values[name] = (total, counted) if counted else None
    return values


def tokens(measure: Tokens, text: Text, a: Map) -> dict[str, Value]:
    n = len(a)
    values: dict[str, Value] = {}
    for name in measure.groups:
        columns = members(text, name) if name != "first" else [0]
        if name == "first":
            values["to_first"] = (sum(a[i, 0] for i in range(1, n)), n - 1) if n > 1 else None
            continue
        values[f"to_{name}"] = (sum(a[i, j] for i in range(n) for j in columns), n) if columns or name not in {"cls", "sep"} else None
    sep = members(text, "sep")
    other = [i for i in range(n) if i not in sep]
    for flow, rows, reference in (("sep_to_sep", sep, 2), ("other_to_sep", other, n - 2)):
        total = sum(a[i, j] for i in rows for j in sep)
        counted = reference if measure.sep_count == "two" else len(rows)
        if flow in measure.flows:
            values[flow] = (total, counted) if counted > 0 and (sep or measure.sep_count == "two") else None
    return values


def entropy(measure: Entropy, text: Text, a: Map) -> dict[str, Value]:
    n = len(a)
    causal = text.causal
    unit = math.log(2) if measure.base == "bits" else 1.0

    def smoothed(i: int) -> list[float]:
        visible = i + 1 if causal else n
        return [float((1 - measure.smoothing) * a[i, j] + (measure.smoothing / visible if j < visible else 0)) for j in range(n)]

    def row_entropy(i: int) -> float:
        return -sum(p * math.log(p) for p in smoothed(i) if p > 0) / unit

    values: dict[str, Value] = {}
    for name in measure.rows:
        rows = members(text, name)
        values["entropy" if name == "all" else f"entropy_{name}"] = (sum(map(row_entropy, rows)), len(rows)) if rows else None
    values["max_weight"] = (sum(max(a[i].tolist()) for i in range(n)), n)
    values["sink_mass"] = (sum(max(0.0, 1 - sum(row)) for row in a.tolist()), n)
    return values


def sinks(measure: Sinks, text: Text, a: Map) -> dict[str, Value]:
    n = len(a)
    if n == 1:
        return {**dict.fromkeys(measure.quantities()), "sink_mass": (max(0.0, 1 - float(a[0, 0])), 1)}
    alphas = {}
    for k in range(n):
        rows = range(k, n) if text.causal else range(n)
        if len(rows) >= measure.seen * n:
            alphas[k] = sum(a[i, k] for i in rows) / len(rows)
    sink = max(alphas, key=lambda k: (np.float32(alphas[k]), -k))
    names = [name for name in ("sep", "punct") if sink in members(text, name)]
    place = "first" if sink == 0 else (names or ["other"])[0]
    values: dict[str, Value] = {"to_first": (sum(a[i, 0] for i in range(1, n)), n - 1), "alpha": (alphas[sink], 1), "value_norm": None}
    cut = sum(a[i, 0] for i in range(min(n, measure.tokens))) / measure.tokens
    values["sink_first"] = (cut > measure.threshold, 1) if n >= measure.tokens else None
    for name in ("first", "sep", "punct", "other"):
        values[f"at_{name}"] = (place == name and alphas[sink] > measure.threshold, 1)
    if not members(text, "sep"):
        values["at_sep"] = None
    total = 0.0
    for i in range(1, n):
        rest = [a[i, j] for j in range(1, n) if a[i, j] > 0]
        total -= sum(p / sum(rest) * math.log(p / sum(rest)) for p in rest)
    values["entropy_without_first"] = (total, n - 1)
    values["sink_mass"] = (sum(max(0.0, 1 - sum(row)) for row in a.tolist()), n)
    return values


def sequences(measure: Sequences, text: Text, a: Map) -> dict[str, Value]:
    """The sets of docs/sequences.md, built element by element. Rows with an empty set are not counted."""
    n = len(a)
    word = [role == WORD for role in text.roles]
    places = shuffled_places(np.array([word]), [text.document], measure.seed)[0].tolist()
    words = [form for form, role in zip(text.forms, text.roles, strict=True) if role == WORD]
    name = [
        word[i] and form[0].isupper() and len(form) > 1 and form.lower() not in words and words.count(form) <= measure.rare
        for i, form in enumerate(text.forms)
    ]
    values: dict[str, Value] = {"previous_token": (sum(a[i, i - 1] for i in range(2, n)), n - 2) if n > 2 else None}
    for ending, order in (("", list(range(n))), ("_shuffled", places)):
        x, named = [text.forms[j] for j in order], [name[j] for j in order]
        induction = [[j for j in range(1, i + 1) if word[j - 1] and x[j - 1] == x[i]] if word[i] else [] for i in range(n)]
        duplicate = [[j for j in range(i) if word[j] and x[j] == x[i]] if word[i] else [] for i in range(n)]
        before = [duplicate[i + 1] if i + 1 < n and named[i + 1] else [] for i in range(n)]
        of_names = [own if named[i] else [] for i, own in enumerate(induction)]
        for quantity, sets in (("induction", induction), ("duplicate", duplicate), ("name_induction", of_names), ("name_copy", before)):
            rows = [i for i in range(n) if sets[i]]
            values[quantity + ending] = (sum(a[i, j] for i in rows for j in sets[i]), len(rows)) if rows else None
    return values


def retrieval(measure: Retrieval, text: Text, a: Map) -> dict[str, Value]:
    """The weight on the passage, as a sum over the rows of the question."""
    places = [i for i, role in enumerate(text.roles) if role == WORD]
    own = text.annotation
    question, passage = set[int](), set[int]()
    for edge in own.passages:
        assert edge.second is not None
        question |= set(range(*edge.first))
        passage |= set(range(*edge.second))
    if not own.passages and own.keywords:
        question = {k for k in range(len(places)) if own.sentences[k] == own.sentences[-1]}
        passage = {k for k, key in enumerate(own.keywords) if key}
    passage -= question
    if not passage or not question:
        return {}
    rows, columns = [places[k] for k in sorted(question)], [places[k] for k in sorted(passage)]
    marked = [np.isin(np.arange(len(a)), chosen) for chosen in (places, rows, columns)]
    key = hash64("other passage", measure.seed, text.document, own.positions[0])
    other = np.flatnonzero(other_passage(marked[0], marked[1], marked[2], key)).tolist()
    values: dict[str, Value] = {"qr": (sum(a[i, j] for i in rows for j in columns), len(rows))}
    values["qr_other"] = (sum(a[i, j] for i in rows for j in other), len(rows)) if other else None
    return values


def relations(measure: Relations, text: Text, a: Map) -> dict[str, Value]:
    """How often the word of greatest weight in the sentence is the head, by loops; the first of equal weights."""
    places = [i for i, role in enumerate(text.roles) if role == WORD]
    words, sentences, heads = text.annotation.words, text.annotation.sentences, text.annotation.heads
    found: dict[str, list[bool]] = {}

    def heaviest(i: int, reverse: bool) -> int | None:
        best, best_weight = None, 0.0
        for place, role in enumerate(text.roles):
            j = places.index(place) if role == WORD else -1
            special = measure.specials == "candidates" and role in (CLS, SEP)
            if special or (j >= 0 and j != i and sentences[j] == sentences[i]):
                weight = np.float32(a[place, places[i]] if reverse else a[places[i], place])
                if weight > best_weight:
                    best, best_weight = (None if special else j), float(weight)
        return best

    for i, word in enumerate(words):
        if word.head is None or word.relation is None:
            continue
        end = max(j for j in range(len(words)) if sentences[j] == sentences[i])
        clitic = i < end and words[i + 1].form in (("'s", "s'") if measure.possessive == "reference" else ("'s", "'"))
        for reverse in (False, True):
            pick = heaviest(i, reverse)
            keep_pick = measure.possessive == "none" or (measure.possessive == "reference" and pick == end)
            if word.relation == "poss" and clitic and not keep_pick:
                pick = heaviest(i + 1, reverse)
            names = [word.relation.split(":")[0] if measure.subtypes == "fold" else word.relation]
            is_punct = word.relation == "punct" or word.upos == "PUNCT"
            if (measure.punct == "include" or not is_punct) and (measure.root == "include" or word.head != 0):
                names.append("all")
            for name in names:
                found.setdefault(name + (" (head-to-dep)" if reverse else ""), []).append(pick is not None and pick == heads[i])
    return {name: (sum(rights), len(rights)) for name, rights in found.items()}


def head_of(text: Text, start: int, end: int, dependencies: bool) -> int:
    """The first nominal word of a span whose governor is outside it, else the first such word, else the word by cue."""
    words, sentences = text.annotation.words, text.annotation.sentences
    outward = []
    for i in range(start, end):
        own = words[i].head
        if own is not None and dependencies:
            first = min(j for j in range(len(words)) if sentences[j] == sentences[i])
            if own == 0 or not start <= first + own - 1 < end:
                outward.append(i)
    nominal = [i for i in outward if words[i].upos in ("NOUN", "PROPN", "PRON")]
    if outward:
        return (nominal or outward)[0]
    return max([i for i in range(start, end) if words[i].form not in (".", "'s")], default=end - 1)


Seen = tuple[int, int, str, int, str]  # start, end, entity, head, kind


def seen_mentions(text: Text, dependencies: bool) -> list[Seen]:
    kinds = {"PRON": "pronoun", "PROPN": "proper"}
    found = []
    for mention in text.annotation.mentions:
        head = head_of(text, mention.start, mention.end, dependencies)
        found.append((mention.start, mention.end, mention.entity, head, kinds.get(text.annotation.words[head].upos or "", "nominal")))
    return found


def answered(text: Text, a: Map, word: int, candidates: set[int], answers: set[int], reverse: bool) -> bool:
    """Whether the candidate of greatest weight is an answer; the first candidate of equal weights counts."""
    places = [i for i, role in enumerate(text.roles) if role == WORD]
    best, best_weight = None, 0.0
    for j in sorted(candidates):
        weight = np.float32(a[places[j], places[word]] if reverse else a[places[word], places[j]])
        if weight > best_weight:
            best, best_weight = j, float(weight)
    return best in answers


def coreference(measure: Coreference, text: Text, a: Map) -> dict[str, Value]:
    mentions = seen_mentions(text, measure.head_words != "cue")
    if measure.singletons == "exclude":
        mentions = [one for one in mentions if one[2] not in text.annotation.singletons]
    found: dict[str, list[bool]] = {}
    for start, end, entity, head, kind in mentions:
        before = [one for one in mentions if (one[0] < start or (one[0] == start and one[1] < end)) and one[3] != head]
        answers = {one[3] for one in before if one[2] == entity}
        if not answers:
            continue
        candidates = {
            "preceding_mentions": {one[3] for one in before},
            "any_other_mention": {one[3] for one in mentions if one[3] != head},
            "preceding_words": set(range(head)),
            "all_words": set(range(len(text.annotation.words))) - {head},
        }[measure.candidates]
        for suffix, reverse in (("", False), (" (antecedent-to-mention)", True)):
            for label in ("all", kind):
                found.setdefault(label + suffix, []).append(answered(text, a, head, candidates, answers, reverse))
    return {name: (sum(rights), len(rights)) for name, rights in found.items()}


def pronouns(measure: Pronouns, text: Text, a: Map) -> dict[str, Value]:
    mentions = seen_mentions(text, measure.head_words != "cue")
    found: dict[str, list[bool]] = {}
    for _, _, entity, head, kind in mentions:
        form = text.annotation.words[head].form
        if kind != "pronoun":
            continue
        others = [one for one in mentions if one[4] != "pronoun" and head not in range(one[0], one[1])]
        candidates, answers = {one[3] for one in others}, {one[3] for one in others if one[2] == entity}
        if not answers or answers == candidates:
            continue
        for suffix, reverse in (("", False), (" (candidate-to-pronoun)", True)):
            for label in ("all", {"he": "masculine", "She": "feminine"}[form], text.annotation.subset):
                if label is not None:
                    found.setdefault(label + suffix, []).append(answered(text, a, head, candidates, answers, reverse))
    return {name: (sum(rights), len(rights)) for name, rights in found.items()}


def trees(measure: SpanningTrees, text: Text, a: Map) -> dict[str, Value]:
    """The maximum spanning tree, by loops that add one word at a time; the first word of equal scores."""
    places = [i for i, role in enumerate(text.roles) if role == WORD]
    words, sentences, heads = text.annotation.words, text.annotation.sentences, text.annotation.heads
    nodes = [k for k, word in enumerate(words) if measure.punct == "include" or not (word.relation == "punct" or word.upos == "PUNCT")]
    cut = np.zeros((len(words), len(words)), dtype=np.float32)
    for i in nodes:
        row = {j: np.float32(a[places[i], places[j]]) for j in nodes if j != i and sentences[j] == sentences[i]}
        total = sum(row.values())
        for j, weight in row.items():
            cut[i, j] = weight / total if total else 0
    scores = cut + cut.T
    inside, edges = nodes[:1], set()
    while len(inside) < len(nodes):
        outside = [k for k in nodes if k not in inside]
        best = max(outside, key=lambda k: (max(scores[j, k] for j in inside), -k))
        joined = max(inside, key=lambda j: (scores[j, best], -inside.index(j)))
        edges.add(frozenset((best, joined)))
        inside.append(best)
    gold = [frozenset((k, heads[k])) for k in nodes if heads[k] >= 0 and heads[k] in nodes]
    return {"uuas": (sum(edge in edges for edge in gold), len(gold)) if gold else None}


def saliency(measure: Saliency, text: Text, a: Map) -> dict[str, Value]:
    """For each group of columns, the sum over pairs of a row and a column that the row can see, and the number of
    pairs. `a` has the sizes of gradients.
    """
    n = len(a)
    named = {name: members(text, name) for name in measure.groups if name != "other"}
    named["other"] = [j for j in range(n) if not any(j in columns for columns in named.values())]
    values: dict[str, Value] = {}
    for name in measure.groups:
        pairs = [(i, j) for i in range(n) for j in named[name] if j <= i or not text.causal]
        values[f"to_{name}"] = (sum(a[i, j] for i, j in pairs), len(pairs)) if pairs else None
    return values


def keywords(measure: Keywords, text: Text, a: Map) -> dict[str, Value]:
    rows = members(text, measure.source)
    words = members(text, "word")
    flags = text.annotation.keywords or (False,) * len(words)
    keys, others = ([j for j, flag in zip(words, flags, strict=True) if flag == wanted] for wanted in (True, False))
    if not rows or not keys or not others:
        return {}

    def column(j: int) -> list[float]:
        return [float(np.float32(a[i, j])) for i in rows]

    def received(j: int) -> float:
        return max(column(j)) if measure.how == "max" else sum(column(j)) / (len(rows) if measure.how == "mean" else 1)

    def wins(k: int, o: int) -> float:
        if column(k) == column(o):
            return 0.5
        # Two nearly equal sums of different numbers may be a tie in float32, depending on the order of addition.
        assume(measure.how == "max" or abs(received(k) - received(o)) > 1e-6)
        return 0.5 if received(k) == received(o) else float(received(k) > received(o))

    key, other = (sum(received(j) for j in side) / len(side) for side in (keys, others))
    auc = sum(wins(k, o) for k in keys for o in others) / (len(keys) * len(others))
    return {"relative": (key - other, 1), "to_keywords": (key, 1), "to_others": (other, 1), "auc": (auc, 1)}


def rows_of(measure: Distances, text: Text) -> list[int]:
    """The rows that are compared. The measure itself draws the sample: the tests are about the values, not about the
    draw.
    """
    if measure.rows == "content":
        open_class = [word.upos in ("NOUN", "PROPN", "VERB", "ADJ", "ADV", "INTJ") for word in text.annotation.words]
        return [i for i, is_open in zip(members(text, "word"), open_class, strict=True) if is_open]
    rows = members(text, measure.rows)
    if measure.sample is None or len(rows) <= measure.sample:
        return rows
    chosen = np.isin(np.arange(len(text.forms)), rows)[None]
    return [int(i) for i in np.flatnonzero(sampled(stack([text.forms], [text.roles]), chosen, measure.sample, 0)[0])]


def divergence(p: Map, q: Map) -> float:
    m = (p + q) / 2
    return sum(float(a / 2 * math.log(a / c)) for row in (p, q) for a, c in zip(row, m, strict=True) if a > 0)


def distances(measure: Distances, texts: list[Text], heads: list[tuple[int, int]]) -> dict[tuple[int, int, str], tuple[float, int]]:
    """By layer and head (from 1) and quantity: the value and the number of rows. `heads` are (layer, head), from 0."""
    total = np.zeros((len(heads), len(heads)))
    represented, compared = 0.0, 0
    for text in texts:
        rows = rows_of(measure, text)
        whole = len(members(text, measure.rows)) if measure.sample is not None else len(rows)
        visible = np.tri(len(text.forms)) if text.causal else np.ones((len(text.forms),) * 2)
        for i in rows:
            even = visible[i] / visible[i].sum()
            ps = [text.maps[layer, head, i] * (1 - measure.smoothing) + measure.smoothing * even for layer, head in heads]
            total += np.array([[divergence(p, q) for q in ps] for p in ps]) * whole / len(rows)
        represented, compared = represented + whole, compared + len(rows)
    found: dict[tuple[int, int, str], tuple[float, int]] = {}
    if not compared or len(heads) < 2:
        return found
    mean = total / (represented if measure.normalise else 1)
    for a, (layer, head) in enumerate(heads):
        others = [(mean[a, b], heads[b][0] == layer) for b in range(len(heads)) if b != a]
        parts = {"nearest": [min(d for d, _ in others)], "own_layer": [d for d, own in others if own]}
        parts["other_layers"] = [d for d, own in others if not own]
        found |= {(layer + 1, head + 1, name): (sum(ds) / len(ds), compared) for name, ds in parts.items() if ds}
    return found


def observe(measure: Measure, text: Text, a: Map) -> dict[str, Value]:
    if isinstance(measure, Positions):
        return positions(measure, text, a)
    if isinstance(measure, Tokens):
        return tokens(measure, text, a)
    if isinstance(measure, Sequences):
        return sequences(measure, text, a)
    if isinstance(measure, Retrieval):
        return retrieval(measure, text, a)
    if isinstance(measure, Sinks):
        return sinks(measure, text, a)
    if isinstance(measure, Entropy):
        return entropy(measure, text, a)
    if isinstance(measure, SpanningTrees):
        return trees(measure, text, a)
    if isinstance(measure, Relations):
        return relations(measure, text, a)
    if isinstance(measure, Coreference):
        return coreference(measure, text, a)
    if isinstance(measure, Pronouns):
        return pronouns(measure, text, a)
    if isinstance(measure, Saliency):
        return saliency(measure, text, a)
    if isinstance(measure, Keywords):
        return keywords(measure, text, a)
    raise NotImplementedError(f"write {measure.name} down slowly, too")


def mean(measure: Measure, texts: list[Text], maps: list[Map], quantity: str, average: str) -> tuple[float, int]:
    """The mean over texts, and n: every text has the same weight (`example`), or every row (`token`)."""
    found = [v for text, a in zip(texts, maps, strict=True) if (v := observe(measure, text, a).get(quantity)) is not None]
    if not found:
        return math.nan, 0
    if average == "example":
        return sum(total / rows for total, rows in found) / len(found), len(found)
    return sum(total for total, _ in found) / sum(rows for _, rows in found), int(sum(rows for _, rows in found))
