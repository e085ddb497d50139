"""Attention: scaled dot-product (dot.py), additive energies, a decoder's step in compiled code."""
