"""Resolving mentions by rule: head words, kinds, attributes, and the baselines a head is compared with."""
