"""Synthetic memory problems: adding and copying. Start with task.py."""
