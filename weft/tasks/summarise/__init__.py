"""Summaries of texts. Start with task.py."""
