"""The web app: runs to look at, and a box to type a sentence into. `headscope.app.server.serve` starts it."""
