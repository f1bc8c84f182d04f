"""Probes: small models trained on what a large one holds, to see what can be read from it."""
