"""Pools, one a file: a Memory becomes one vector a row. Start with pool.py (the contract)."""
