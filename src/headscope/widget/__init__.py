"""Views in a notebook: live with anywidget, and without it the same page in a frame."""
