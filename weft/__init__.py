"""Weft: sequence models from recurrent cells to Transformers.

An encoder reads a sequence into a memory, attention looks back into it, and a decoder writes a sequence
one step at a time; each step takes a state and returns the next. Start with `weft demo`, or:

    import weft
    translator = weft.load("runs/en-es")
    translator.predict("Click the button.")
"""

from typing import Any

from weft.version import __version__

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    # Imported on demand, so that `weft --help` does not wait for torch.
    if name == "load":
        from weft.run import load

        return load
    if name == "nn":
        import weft.nn

        return weft.nn
    raise AttributeError(f"module 'weft' has no attribute {name!r}")
