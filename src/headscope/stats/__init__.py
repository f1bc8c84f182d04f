"""Statistics shared by all measures."""
