"""Recurrent cells, one per file. Start with cell.py (the contract), then elman.py (the simplest)."""
