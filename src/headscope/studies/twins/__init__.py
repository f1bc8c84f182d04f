"""Heads of two models compared: whether the heads of one have counterparts in the other (beyond Clark et al. §6)."""
