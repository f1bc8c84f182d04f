"""Resolving mentions by rule: head words, kinds, attributes, and the baselines that heads are compared with."""
