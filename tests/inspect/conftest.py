"""Runs of all tasks, each trained for three updates when a test first asks for it."""

from collections.abc import Callable

import pytest

from tests.commands.shell import weft
from tests.inspect.every import MADE, SHORT
from weft.run import LoadedRun, open_run


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], LoadedRun]:
    """A run of each task, trained when first asked for."""
    made: dict[str, LoadedRun] = {}

    def get(name: str) -> LoadedRun:
        if name not in made:
            folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
            make, changes = MADE[name]
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("WEFT_CACHE", str(folder / "cache"))
                answer = weft("train", make(folder / "toy"), "--run", folder / "run", *SHORT, *changes)
            assert answer.code == 0, answer.err
            made[name] = open_run(folder / "run", device="cpu")
        return made[name]

    return get
