"""Views for the browser: pages, and the data that `headscope.js` draws (frontend/src/types.ts)."""
