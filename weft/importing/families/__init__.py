"""Checkpoints of transformers: decoders, encoders and encoder-decoders; every.py finds the right one."""

from weft.importing.families.every import import_model as import_model
