"""A summary: as a translation, with a long side. Read next: translate.py."""

from weft.run import Opened
from weft.tasks.shared.inspected.inspected import Kind, Subject, checked, example
from weft.tasks.translate.inspected import of


class SummariseSubject(Kind):
    """A text and what was written of it."""

    def read(self, opened: Opened, text: str | None) -> Subject:
        """See Kind."""
        text = checked(example(opened) if text is None else text)
        return of(opened, opened.task.predictor(opened.model), text, opened.task.data)
