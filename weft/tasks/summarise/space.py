"""What `weft tune` tries: the settings of every task that writes a text for a source."""

from weft.tasks.shared.writing.space import decoding, space

__all__ = ["decoding", "space"]
