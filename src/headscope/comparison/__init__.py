"""Comparisons: differences of runs and of studies, heads that are alike, and whether a result made again is
identical.
"""
