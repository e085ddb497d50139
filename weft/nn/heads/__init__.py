"""Heads, one a file: features become a prediction and a loss. Start with head.py (the contract)."""
