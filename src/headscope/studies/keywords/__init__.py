"""Keywords by attention: which heads tell the words of keyphrases from the others, alone and together (Štefánik)."""

from __future__ import annotations

BASELINES = ("every word", "position", "tf-idf", "yake")  # ways to find keywords that look at no attention
