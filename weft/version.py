"""The version of Weft."""

__version__ = "0.1.0"
