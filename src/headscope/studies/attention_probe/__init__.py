"""Attention probes: how much of a dependency tree can be read from all heads together (Clark et al. 2019, §5)."""
