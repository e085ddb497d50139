"""Shared by tasks that write a text for a source: data, model, search, scores. Start with data.py."""
