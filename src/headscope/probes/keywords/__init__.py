"""Keywords by attention: which heads tell the words of keyphrases from the others, alone and together (Štefánik)."""
