"""A model's step for searches in compiled code, by its decoder's kind. Start with ends.py."""
