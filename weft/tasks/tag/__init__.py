"""A tag for each word. Start with task.py."""
