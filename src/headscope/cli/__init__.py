"""The command line: one file per verb; the verbs of studies follow from their declarations."""
