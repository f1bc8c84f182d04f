"""Models: loading, verification, attention capture, gates, gradients, pruning, training. Only this package depends on
the internals of transformers.
"""

import logging

# transformers imports torchao if it is installed, and torchao then logs which of its kernels are unavailable.
for _name in ("torchao", "torch.utils._pytree"):
    logging.getLogger(_name).setLevel(logging.ERROR)
DEFAULT = "mini"
EMBEDDED = (DEFAULT, "mini-decoder")  # the folders beside this file: an encoder and a language model
MODEL_HELP = "mini or mini-decoder (embedded), a folder, a GGUF file, or a hub id"
