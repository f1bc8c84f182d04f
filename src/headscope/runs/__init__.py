"""From a specification to tables: reading, computing, merging, keeping."""
