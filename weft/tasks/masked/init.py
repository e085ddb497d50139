"""`weft init masked`: a recipe for a user's text."""

from typing import ClassVar

from weft.tasks.init import ContextInit


class MaskedInit(ContextInit):
    """A recipe for a masked language model."""

    about: ClassVar[str] = "A masked language model (BERT) for plain text."
    epochs: ClassVar[int] = 10
