"""Importing: weights of torch.nn's modules and of checkpoints of the `transformers` library.

Start with checkpoint.py (how a directory is read) and gpt2.py (the simplest family). Nothing here needs the
library whose files it reads.
"""
