"""Captions for pictures. Start with task.py."""
