"""Synthetic memory problems: adding, copying, recall, state tracking. Start with task.py."""
