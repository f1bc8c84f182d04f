"""Runs: a specification executed from corpus to tables, maps from files measured, and the cost estimated beforehand."""
