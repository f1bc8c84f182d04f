"""What a model is, in words and numbers, before anything is run: `headscope inspect`."""
