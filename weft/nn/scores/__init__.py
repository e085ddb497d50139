"""Attention scores, one a file. Start with score.py (the contract), then dot.py (the simplest)."""
