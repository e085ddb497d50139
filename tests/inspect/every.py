"""A tiny recipe of every task, and what is seen of its run: shared by the tests of subjects and pictures."""

from collections.abc import Callable
from pathlib import Path

from tests.commands.test_masked import make as make_masked
from tests.commands.test_speech import make as make_speech
from tests.tasks.every import KINDS
from weft.inspect.inspection import inspected_of, views_of
from weft.inspect.views.view import View
from weft.run import LoadedRun
from weft.tasks.inspection import Inspected

SHORT = ("training.max_updates=3", "training.validate_every=3", "training.device=cpu")
SHORT += ("training.tensorboard=false", "training.log_every=1", "training.monitors=false")
MADE: dict[str, tuple[Callable[[Path], Path], list[str]]] = {
    name: (kind.make, [one for one in kind.changes if not one.startswith("decoding.")])
    for name, kind in KINDS.items()
}
MADE |= {
    "masked": (make_masked, []),
    "speech": (make_speech, []),
}


def looked_at(opened: LoadedRun, text: str | None = None) -> tuple[Inspected, dict[str, View]]:
    subject = inspected_of(opened, text)
    return subject, {view.title: view for view in views_of(opened, subject)}
