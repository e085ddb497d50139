"""Decoders, one per file; they write one step at a time. Start with decoder.py (the contract)."""
