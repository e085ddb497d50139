"""Checkpoints of transformers, a file for each family; every.py finds the right one. Read next: every.py."""

from weft.importing.families.every import import_model as import_model
