"""The digests of a run's data files, in its data.json: a training resumes only with the data it began with.

Folders with many files have one digest. Read next: ../store/digests.py; ready.py.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from weft.errors import CheckpointError, DataError
from weft.store import digests, files, jsonfile
from weft.wording import numbered

FILE = "data.json"
MANY = 100
"""Files of a folder, from which on they have one digest together."""


class SavedDigests(jsonfile.Schema):
    """A data.json: digests of files by path; a path that ends in / is a folder."""

    data: dict[str, str]


class DataFiles:
    """The data files of a run; until it has checkpoints (`resumes`) any data is right."""

    def __init__(self, run: Path, *, resumes: bool) -> None:
        self.run = run
        self.known: Mapping[str, str] = {}
        if resumes and files.is_file(run / FILE):
            remedy = "delete it to resume without a check of the data"
            self.known = jsonfile.load(run / FILE, SavedDigests, remedy).data

    def check_known(self) -> None:
        """Check the files that are still where they were, before they are read."""
        self._refuse(self.changed())

    def changed(self) -> "ChangedFile | None":
        """The first file that is still where it was, but has another content."""
        return self._first(
            _of(Path(name) for name in self.known if not name.endswith("/") and Path(name).is_file())
        )

    def check(self, read: Iterable[Path]) -> None:
        """Check the files that were read, which may have moved, and write down those of a new run."""
        own = self.run.absolute()
        found = _of(path for path in read if path.is_file() and not path.is_relative_to(own))
        self._refuse(self._first(found))
        if found and not self.known:
            jsonfile.save(self.run / FILE, {"data": found})

    def _refuse(self, file: "ChangedFile | None") -> None:
        if file is not None:
            raise CheckpointError(
                f"{file.path}: {file.what} since the training of {self.run} began; to train on it, start a "
                f"new run from this one: weft train {self.run / 'recipe.yaml'} --run {numbered(self.run)} "
                f"training.start={self.run}; to resume this one all the same, delete {self.run / FILE}"
            )

    def _first(self, found: Mapping[str, str]) -> "ChangedFile | None":
        """The first changed file; one may have moved from a folder that is not read any more.

        From folders that are still read it may not: the name of its folder may be its label.
        """
        folders = {Path(path).parent for path in found}
        moved: dict[str, set[str]] = {}
        for path, digest in self.known.items():
            if Path(path).parent not in folders:
                moved.setdefault(Path(path).name, set()).add(digest)
        for path, digest in found.items() if self.known else ():
            then = {self.known[path]} if path in self.known else moved.get(Path(path).name, set())
            if digest not in then:
                return ChangedFile(path, "has changed" if then else "is new")
        return None


class ChangedFile(NamedTuple):
    """A data file that is not as it was."""

    path: str
    what: str


def check_unchanged(folder: Path, what: str, option: str) -> None:
    """Check that runs that are compared with each other are all trained on the same data."""
    for one in sorted(folder.glob(f"**/{FILE}"))[:1]:
        if found := DataFiles(one.parent, resumes=True).changed():
            raise DataError(
                f"{found.what} since {what} began, so its scores could not be compared; remove {folder}, or "
                f"choose another {option}",
                path=found.path,
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
