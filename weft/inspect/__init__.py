"""Pictures of what a model does, as PNG and SVG. Read ../figures/alignment.py first."""
