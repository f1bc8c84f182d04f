"""How much each token of a text bears on each other token, layer by layer: attention, Jacobians of hidden states,
and other readings.
"""
