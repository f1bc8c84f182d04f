"""Modules that several tests import: small models, texts, corpora and studies, and slow second implementations."""
