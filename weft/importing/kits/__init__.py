"""Checkpoints of other translation toolkits, one file each; every.py lists them. Read next: kit.py."""
