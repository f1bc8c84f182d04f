"""The influence of each token of a text on each other token, layer by layer: attention, Jacobians of hidden states, and
other kinds.
"""
