"""Pools, one per file: from a Memory to one vector per row. Start with pool.py (the contract)."""
