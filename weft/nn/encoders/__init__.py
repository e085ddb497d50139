"""Encoders, one a file: a sequence becomes a Memory. Start with encoder.py (the contract)."""
