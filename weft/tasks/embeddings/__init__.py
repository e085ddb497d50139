"""One vector for each word. Start with task.py."""
