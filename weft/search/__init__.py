"""Search: the best sequences that a step function can write. Read step.py, then greedy.py and beam.py."""

from weft import lazy

__getattr__, __dir__ = lazy.attach(__name__)
