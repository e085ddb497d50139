"""What is seen of a run: shared by the tests of subjects and pictures."""

from weft.inspect.inspection import inspection_of, views_of
from weft.inspect.views.view import View
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection


def looked_at(opened: LoadedRun, text: str | None = None) -> tuple[Inspection, dict[str, View]]:
    subject = inspection_of(opened, text)
    return subject, {view.title: view for view in views_of(opened, subject)}
