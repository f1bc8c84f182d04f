"""From annotated words to model inputs, and from token maps to word maps."""
