"""Weft: sequence models from recurrent cells to Transformers.

An encoder reads a sequence into a memory, attention looks back into it, and a decoder writes a sequence
one step at a time; each step takes a state and returns the next. Start with `weft demo`, or:

    import weft
    model = weft.fit("classify", frame, text="text", label="queue")
    translator = weft.load("runs/en-es")
    translator.predict("Click the button.")

`weft.nn` has the layers, `weft.search` beam search and others, `weft.metrics` the scores, `weft.data` the
readers of files, and `weft.testing` the checks of a part of your own.
"""

from weft import lazy
from weft.version import __version__ as __version__

__getattr__, __dir__ = lazy.attach(__name__)
