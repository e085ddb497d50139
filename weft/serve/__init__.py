"""Trained runs behind a page and an HTTP interface. Read next: app.py, then batcher.py."""
