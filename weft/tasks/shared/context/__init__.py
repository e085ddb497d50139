"""Shared code of models of words in context; standing.py lets other tasks use such a model."""
