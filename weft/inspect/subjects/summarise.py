"""A summary: as a translation, with a long side. Read next: translate.py."""

from weft.inspect.subjects.subject import Kind, Subject, checked, example
from weft.inspect.subjects.translate import of
from weft.run import Opened


class SummariseSubject(Kind):
    """A text and what was written of it."""

    def read(self, opened: Opened, text: str | None) -> Subject:
        """See Kind."""
        text = checked(example(opened) if text is None else text)
        return of(opened, opened.task.predictor(opened.model), text, opened.task.data)
