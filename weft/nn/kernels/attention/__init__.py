"""Attention: products with softmax (dot.py), additive energies, a decoder's step in compiled code."""
