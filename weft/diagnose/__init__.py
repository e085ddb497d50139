"""Numbers about a model at work: how far gradients reach (G1 to G4), gates, spectra, attention.

Start with recorded.py, which sees what the cells of a model read; then reach.py.
"""
