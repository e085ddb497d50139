"""A translation between two of many languages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft.errors import DataError
from weft.tasks.shared.inspected.inspected import Examples, Inspected, checked
from weft.tasks.translate.inspected import of

if TYPE_CHECKING:
    from weft.tasks.multilingual.task import Multilingual


def inspected(
    task: "Multilingual", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Task.inspected.

    A text may begin with its direction ("en-de: Click."); else it is of the recipe's first pair.
    """
    data = task.data
    text = checked(examples.middle() if text is None else text)
    begin, colon, rest = text.partition(":")
    pair = data.pairs[0]
    if colon and begin.strip() in (*data.pairs, *data.zero_shot):
        pair, text = begin.strip(), rest.strip()
    if not text:
        raise DataError(f"the text after {pair}: is empty; give one sentence, in quotes")
    return of(task.predictor(model).of(pair), text, data.of(pair))
