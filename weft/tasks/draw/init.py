"""`weft init draw`: a recipe for a user's pictures with captions."""

from typing import ClassVar

from weft.tasks.pictures.recipe import CaptionsInit


class DrawInit(CaptionsInit):
    """A recipe that learns to draw pictures from their captions."""

    about: ClassVar[str] = "Pictures for captions."
    largest: ClassVar[int] = 32
