"""The structural probe of Hewitt & Manning (2019): whether trees lie in a model's vectors, as distances and as depths (METHODS §10)."""
