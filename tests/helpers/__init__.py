"""Modules that several tests import: small models, texts, corpora and studies, and slow plain implementations."""
