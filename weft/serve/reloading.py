"""Take over a model or a glossary that has changed on disk, such as a model that is still being trained.

Requests that have begun are answered by the model that they began with. Read next: served.py.
"""

import sys
import threading
from collections.abc import Iterable, Iterator

from weft.serve.served import ServedRun

SECONDS = 2.0
"""How often the files are looked at."""


class Reloader:
    """Looks for runs that have changed.

    Args:
        runs: name to run.
    """

    def __init__(self, runs: dict[str, ServedRun]) -> None:
        self.runs = runs
        self._failed: dict[str, object] = {}

    def changed(self) -> Iterator[ServedRun]:
        """The runs that have another model now, opened. One that cannot be opened is reported once."""
        for run in list(self.runs.values()):
            state = run.now()
            if state in (None, run.state, self._failed.get(run.name)):
                continue
            try:
                fresh = run.again()
            except Exception as error:  # noqa: BLE001  no file may end the server
                self._failed[run.name] = state
                print(f"{run.name}: the change on disk is not used: {error}", file=sys.stderr, flush=True)
                continue
            if fresh.ready:
                yield fresh

    def reject(self, runs: Iterable[ServedRun]) -> None:
        """Leave these opened runs alone until they change again."""
        self._failed |= {run.name: run.state for run in runs}

    def watch(self) -> None:
        """Replace changed runs in `runs`, in a thread, until the process ends."""

        def look() -> None:
            while not threading.Event().wait(SECONDS):
                for fresh in self.changed():
                    self.runs[fresh.name] = fresh

        threading.Thread(target=look, name="reloading", daemon=True).start()
