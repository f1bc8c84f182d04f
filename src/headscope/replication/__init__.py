"""Replications: recipes of steps and claims of a paper, and our number for each published one."""

from __future__ import annotations

from headscope.replication.recipe import Recipe, read_recipe, recipe_names

__all__ = ["Recipe", "read_recipe", "recipe_names"]
