"""Results: tables, run folders and study folders, signatures. Nothing here imports torch or transformers."""
