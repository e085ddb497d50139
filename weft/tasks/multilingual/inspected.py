"""A translation between two of many languages."""

from weft.errors import DataError
from weft.run import Opened
from weft.tasks.shared.inspected.inspected import Kind, Subject, checked, example
from weft.tasks.translate.inspected import of


class MultilingualSubject(Kind):
    """A text may begin with its direction ("en-de: Click."); else it is of the recipe's first pair."""

    def read(self, opened: Opened, text: str | None) -> Subject:
        """See Kind."""
        data = opened.task.data
        text = checked(example(opened) if text is None else text)
        begin, colon, rest = text.partition(":")
        pair = data.pairs[0]
        if colon and begin.strip() in (*data.pairs, *data.zero_shot):
            pair, text = begin.strip(), rest.strip()
        if not text:
            raise DataError(f"the text after {pair}: is empty; give one sentence, in quotes")
        return of(opened, opened.task.predictor(opened.model).of(pair), text, data.of(pair))
