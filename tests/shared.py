"""One trained run of each task for all tests, made by the worker that first asks for it; read-only.

    run = shared_run("translate")                # nobody writes into it
    own = copied(shared_run("tag"), tmp_path)    # for a test that changes it

A test trains anew only if it tests the training, needs another recipe, or needs no more than a few updates
(a tenth of a second). Read next: toys.py, the data; conftest.py, which finds who wrote into a shared run.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import toys
from tests.commands import corpus, labelled, prose
from tests.commands.shell import weft

SHORT = ("training.max_updates=3", "training.validate_every=3")


class Toy(NamedTuple):
    """What a run is trained from.

    make: writes data and recipe into a folder, and returns the recipe.
    changes: of the recipe; "{toy}" is the folder.
    """

    make: Callable[[Path], Path]
    changes: tuple[str, ...] = ()


HERE = "data.folder={toy}"
PROMPT = (
    "model.encoder=null",
    "model.decoder={{use: recurrent, cell: gru, sizes: [64]}}",
    "data.prompt='{{source}} to {{target}}: {{text}}'",
    "model.learns=all",
    "training.max_updates=240",
)
TAGS = (
    "model.encoder={{use: recurrent, cell: gru, sizes: [24], bidirectional: true}}",
    "model.decoder={{use: recurrent, cell: gru, sizes: [32], score: bilinear}}",
)
TOYS = {
    "translate": Toy(corpus.make),
    "translate without attention": Toy(corpus.make, ("model.decoder.enters=never", "training.max_updates=2")),
    "summarise": Toy(toys.names),
    "summarise without copying": Toy(toys.digests),
    "multilingual": Toy(toys.many, TAGS),
    "multilingual by a prompt": Toy(toys.many, PROMPT),
    "language": Toy(prose.make),
    "language in windows": Toy(lambda folder: prose.make(folder, batches="windows")),
    "language in lines": Toy(lambda folder: prose.make(folder, batches="lines")),
    "classify": Toy(labelled.make_texts),
    "several labels": Toy(labelled.make_several, (*labelled.SEVERAL, HERE)),
    "tag": Toy(labelled.make_sentences),
    "forecast": Toy(toys.series, ("training.max_updates=3",)),
    "embeddings": Toy(toys.words),
    "caption": Toy(toys.captions, (HERE,)),
    "draw": Toy(toys.drawings, (HERE,)),
    "elmo": Toy(toys.contexts),
    "images": Toy(toys.pictures, (HERE,)),
    "masked": Toy(toys.gaps),
    "memory": Toy(toys.sums, SHORT),
    "speech": Toy(toys.songs),
}
"""Names as in tasks/every.py, and variants; a pointer copies in `summarise`."""

_FOLDER = Path(os.environ["WEFT_TRAINED"])
_asked: set[Path] = set()


def shared_run(name: str) -> Path:
    """The run of a toy; its data are in `toy` beside it."""
    return shared(name, lambda folder: _train(TOYS[name], folder)) / "run"


def run_fixture(name: str) -> Any:
    """A fixture of a module: this shared run."""
    return pytest.fixture(scope="module")(lambda: shared_run(name))


def shared(name: str, make: Callable[[Path], None]) -> Path:
    """A folder that all workers read; `make` fills it where nobody has."""
    folder = _FOLDER / name.replace(" ", "-")
    with (_FOLDER / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = folder / "whole.json"
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed on the way
            folder.mkdir()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("WEFT_CACHE", str(_FOLDER / "cache"))
                make(folder)
            part = folder / "whole.part"
            part.write_text(json.dumps(_seen(folder)))
            part.rename(whole)
    _asked.add(folder)
    return folder


def copied(run: Path, folder: Path) -> Path:
    """A copy of a run and its data in a folder, to be changed; the recipe still names the shared data."""
    shutil.copytree(run, folder / "run")
    return folder / "run"


def quick_first(cases: Mapping[str, Any], count: int = 1) -> list[Any]:
    """Parameters of a test; all but the first `count` run with the slow tests: each takes seconds."""
    return [
        pytest.param(case, id=name, marks=[] if n < count else [pytest.mark.slow])
        for n, (name, case) in enumerate(cases.items())
    ]


def changed() -> list[str]:
    """Files of shared folders that a test wrote, since this was last asked."""
    found = []
    for folder in sorted(_asked):
        before, now = json.loads((folder / "whole.json").read_text()), _seen(folder)
        paths = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        found += [str(folder / name) for name in sorted(paths)]
        if paths:
            (folder / "whole.json").write_text(json.dumps(now))
    return found


def _train(toy: Toy, folder: Path) -> None:
    recipe = toy.make(folder / "toy")
    changes = [change.format(toy=folder / "toy") for change in toy.changes]
    weft("train", recipe, "--run", folder / "run", *changes, code=0)


def _seen(folder: Path) -> dict[str, list[int]]:
    """Every file with its size and time; locks, which every reader may take, left out."""
    found = {}
    for inside, _, names in os.walk(folder):  # pathlib takes six times as long, after every module of tests
        for name in names:
            if name != ".lock" and not name.startswith("whole."):
                about = os.stat(f"{inside}/{name}")
                found[f"{inside}/{name}"[len(f"{folder}/") :]] = [about.st_size, about.st_mtime_ns]
    return found
