"""The digests of a run's data files, in its data.json: a training resumes only with the data it began with.

Folders with many files have one digest. Read next: ../store/digests.py; ready.py.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from weft.errors import CheckpointError
from weft.store import digests, files, jsonfile
from weft.wording import numbered

FILE = "data.json"
MANY = 100
"""Files of a folder, from which on they have one digest together."""


class SavedDigests(jsonfile.Schema):
    """A data.json: digests of files by path; a path that ends in / is a folder."""

    data: dict[str, str]


class DataFiles:
    """The data files of a run.

    Args:
        run: the run directory.
        resumes: whether the run has checkpoints; until then any data is right.

    Raises:
        CheckpointError: its data.json is damaged.
    """

    def __init__(self, run: Path, *, resumes: bool) -> None:
        self.run = run
        self.known: Mapping[str, str] = {}
        if resumes and files.is_file(run / FILE):
            remedy = "delete it to resume without a check of the data"
            self.known = jsonfile.load(run / FILE, SavedDigests, remedy).data

    def check_known(self) -> None:
        """Check the files that are still where they were, before they are read.

        Raises:
            CheckpointError: one has changed.
        """
        self._check(_of(Path(name) for name in self.known if not name.endswith("/") and Path(name).is_file()))

    def check(self, read: Iterable[Path]) -> None:
        """Check the files that were read, which may have moved, and write down those of a new run.

        Raises:
            CheckpointError: one has changed, or data.json cannot be written.
        """
        own = self.run.absolute()
        found = _of(path for path in read if path.is_file() and not path.is_relative_to(own))
        self._check(found)
        if found and not self.known:
            jsonfile.save(self.run / FILE, {"data": found})

    def _check(self, found: Mapping[str, str]) -> None:
        """A file that has moved must have the digest of one with its name."""
        if not self.known:
            return
        by_name: dict[str, set[str]] = {}
        for path, digest in self.known.items():
            by_name.setdefault(Path(path).name, set()).add(digest)
        for path, digest in found.items():
            then = {self.known[path]} if path in self.known else by_name.get(Path(path).name, set())
            if digest not in then:
                other = numbered(self.run)
                what = "has changed" if then else "is new"
                raise CheckpointError(
                    f"{path}: {what} since the training of {self.run} began; to train on it, start a new "
                    f"run from this one: weft train {self.run / 'recipe.yaml'} --run {other} "
                    f"training.start={self.run}; to resume this one all the same, delete {self.run / FILE}"
                )


def _of(paths: Iterable[Path]) -> dict[str, str]:
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    found: dict[str, str] = {}
    for folder, inside in folders.items():
        each = {str(path): _digest(path) for path in sorted(inside)}
        if len(inside) < MANY:
            found |= each
        else:
            total = hashlib.sha256(
                "\n".join(f"{Path(path).name}\t{one}" for path, one in each.items()).encode()
            )
            found[f"{folder}/"] = total.hexdigest()
    return found


def _digest(path: Path) -> str:
    try:
        return digests.file_digest(path)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
