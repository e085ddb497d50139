"""Recurrent cells, one per file. Start with cell.py (the contract), then elman.py (the simplest)."""

from weft import lazy

__getattr__, __dir__ = lazy.attach(__name__)
