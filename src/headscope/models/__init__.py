"""Models: loading, verification, capture of attention, gates, gradients, pruning, training. Only this package knows
transformers.
"""
