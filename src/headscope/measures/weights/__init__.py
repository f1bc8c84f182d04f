"""Weights that measures read without whole maps: between words, within sentences, by blocks of
rows, of single pairs.
"""
