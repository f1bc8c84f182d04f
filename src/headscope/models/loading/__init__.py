"""Loading models of every accepted kind: folders, hub ids, adapters, GGUF files, quantised models, and models in
memory.
"""
