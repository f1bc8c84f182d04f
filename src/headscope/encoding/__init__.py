"""Encoding: annotated words become model inputs, and token maps become word maps."""
