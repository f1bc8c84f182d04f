"""Comparisons: differences of runs and of studies, similar heads, and identical reruns."""
