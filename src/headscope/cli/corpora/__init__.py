"""`headscope corpus`: look at a corpus before running a model over it."""
