"""Comparisons: differences of runs and of studies, heads that are alike, and identical reruns."""
