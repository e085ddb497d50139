"""Data: readers of the files that people have, and batches of what they hold. Read lines.py first."""

from weft import lazy

__getattr__, __dir__ = lazy.attach(__name__)
