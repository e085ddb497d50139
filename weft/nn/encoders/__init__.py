"""Encoders, one per file: from a sequence to a Memory. Start with encoder.py (the contract)."""
