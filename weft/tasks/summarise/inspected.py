"""A summary: as a translation, with a long side. Read next: ../translate/inspected.py."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft.tasks.shared.inspected.inspected import Examples, Inspected, checked
from weft.tasks.translate.inspected import of

if TYPE_CHECKING:
    from weft.tasks.summarise.task import Summarise


def inspected(
    task: "Summarise", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Task.inspected.

    A text and what was written of it.
    """
    text = checked(examples.middle() if text is None else text)
    return of(task.predictor(model), text, task.data)
