"""Recordings to text. Start with task.py."""
