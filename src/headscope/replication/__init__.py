"""Papers done again: recipes of steps and claims, and our number beside each published one."""

from __future__ import annotations

from headscope.replication.recipe import Recipe, read_recipe, recipe_names

__all__ = ["Recipe", "read_recipe", "recipe_names"]
