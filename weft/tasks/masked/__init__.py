"""Masked language models: hidden words predicted. Start with task.py."""
