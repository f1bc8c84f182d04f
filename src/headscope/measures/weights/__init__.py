"""Weights that measures read without whole maps: between words, within sentences, some rows at a time, single pairs."""
