"""`weft init elmo`: a recipe for a user's text."""

from typing import ClassVar

from weft.tasks.init import ContextInit


class ElmoInit(ContextInit):
    """A recipe for vectors of words in context, read by taggers and classifiers."""

    about: ClassVar[str] = "Vectors for words in context (ELMo)."
    epochs: ClassVar[int] = 5
