"""Measurements of a running model: how far gradients reach, gates, spectra, attention.

Start with recorded.py, which records the inputs and states of a model's cells; then reach.py.
"""
