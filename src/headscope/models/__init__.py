"""Models: loading, verification, capture of attention, gates, gradients, pruning, training. Only this package knows
transformers.
"""

DEFAULT = "mini"
EMBEDDED = (DEFAULT, "mini-decoder")  # the folders beside this file: an encoder and a language model
MODEL_HELP = "mini or mini-decoder (embedded), a local folder, or a hub id"
