"""Classes for pictures and clips. Start with task.py."""
