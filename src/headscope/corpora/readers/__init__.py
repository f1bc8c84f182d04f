"""Readers, one module per format: from a file to documents, streaming."""
