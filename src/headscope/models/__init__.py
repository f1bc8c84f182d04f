"""Everything that knows transformers' internals."""
