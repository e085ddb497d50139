"""`weft init caption`: a recipe for a user's pictures with captions."""

from typing import ClassVar

from weft.tasks.pictures.recipe import CaptionsInit


class CaptionInit(CaptionsInit):
    """A recipe that learns to caption pictures."""

    about: ClassVar[str] = "Captions for pictures."
    largest: ClassVar[int] = 64  # largest side at which a small convolutional net is fast on a CPU
