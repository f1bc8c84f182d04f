"""Descriptions of a model before anything is run: `headscope inspect`."""
