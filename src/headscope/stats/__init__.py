"""Statistics as pure functions of arrays: bootstrap, intervals, tests, correlations, trees, scaling."""
