"""Pictures of what a model does, as PNG and SVG. Read alignment.py first."""
