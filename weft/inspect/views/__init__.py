"""One file for each thing that can be seen of a run. Start with view.py."""
