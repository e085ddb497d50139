"""Scores of whole outputs, each of which says how it was computed. Read metric.py, then bleu.py."""
