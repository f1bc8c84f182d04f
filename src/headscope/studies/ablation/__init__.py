"""Are all these heads needed? Heads switched off one by one, all but one, layer by layer, and more and more (Michel et al. 2019)."""
