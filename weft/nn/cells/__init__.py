"""Recurrent cells, one a file. Start with cell.py (the contract), then elman.py (the simplest)."""
