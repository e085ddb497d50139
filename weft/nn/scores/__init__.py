"""Attention scores, one per file. Start with score.py (the contract), then dot.py (the simplest)."""
