"""Heads, one per file: from features to a prediction and a loss. Start with head.py (the contract)."""
