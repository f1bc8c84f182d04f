"""Models: loading, verification, capture of attention, gates, gradients, pruning, training. Only this package knows
transformers.
"""

import logging

# transformers imports torchao where it is installed, and torchao tells which of its kernels cannot be used here.
for _name in ("torchao", "torch.utils._pytree"):
    logging.getLogger(_name).setLevel(logging.ERROR)
DEFAULT = "mini"
EMBEDDED = (DEFAULT, "mini-decoder")  # the folders beside this file: an encoder and a language model
MODEL_HELP = "mini or mini-decoder (embedded), a folder, a GGUF file, or a hub id"
