"""The engine of runs: the specification, shards, workers (local, processes, Ray), prefetching, checkpoints, failing
texts.
"""
