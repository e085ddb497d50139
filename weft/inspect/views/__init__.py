"""The views of a run, one per file. Start with view.py."""
