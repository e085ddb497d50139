"""The inside of a model as views, on a page and as files. Start with inspection.py."""
