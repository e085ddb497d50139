"""Translation of one language into another. Start with task.py."""
