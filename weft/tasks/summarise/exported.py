"""The graphs of shared/writing/exported.py."""

from weft.tasks.shared.writing.exported import exported

__all__ = ["exported"]
