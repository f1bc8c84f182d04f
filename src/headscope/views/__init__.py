"""Views of texts and runs for the browser: the pages, and the data that the bundle in `headscope.js` draws
(frontend/src/types.ts).
"""
