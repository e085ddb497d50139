"""Classes for texts. Start with task.py."""
