"""Example texts of a run and the attention maps kept for pages."""
