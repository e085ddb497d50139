"""Memory-mapped token ids of a parallel text of any size, built once and opened instantly.

Memory use is bounded while building (one piece of lines per process) and while reading (the operating system
loads and drops pages). A store is a directory of little-endian arrays and store.json; it is written
atomically. Read next: building.py; batching.py, which needs the lengths.
"""

import hashlib
import json
import os
import shutil
import socket
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.building import FILES, VERSION, EncodingSettings, PairEncoder, SavedStore, cores, write
from weft.errors import DataError
from weft.store import files, jsonfile
from weft.store.digests import file_digest, note

LOCK = "lock"  # lock file held by the building process


def content_key(files: Iterable[str | Path], **settings: Any) -> str:
    """A hash of everything that determines a store's ids: the files' bytes and the settings."""
    total = hashlib.sha256(json.dumps([VERSION, settings], sort_keys=True).encode())
    for path in files:
        try:
            note(path)
            total.update(bytes.fromhex(file_digest(Path(path))))
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror}); check the name", path=path) from error
    return total.hexdigest()


class TokenStore:
    """Pairs of token ids by example number; create one with `build` or `open`.

    Attributes:
        lengths: [N, 2] int32, tokens of source and target, without sos and eos.
        numbers: [N] int64, line number of each example in its file.
        report: numbers of pairs read, kept, left out as too long, and left out because a side is empty;
            number of sources that were truncated.
    """

    def __init__(self, directory: Path, meta: SavedStore) -> None:
        self.directory = directory
        self.key = meta.key
        self.report: dict[str, int] = meta.report
        arrays = {name: _map(directory / name, *form) for name, form in FILES.items()}
        self.lengths = arrays["lengths"]
        self.numbers = arrays["numbers"]
        self._ends = arrays["ends"]
        self._source, self._target = arrays["source.ids"], arrays["target.ids"]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids of source and target, two read-only int32 arrays."""
        ends, lengths = self._ends[number].tolist(), self.lengths[number].tolist()
        return (
            self._source[ends[0] - lengths[0] : ends[0]],
            self._target[ends[1] - lengths[1] : ends[1]],
        )

    @classmethod
    def open(cls, directory: str | Path) -> "TokenStore":
        """Open an existing store."""
        directory = Path(directory)
        remedy = "delete the directory and train again to rebuild it"
        try:
            meta = jsonfile.decode(jsonfile.read_bytes(directory / "store.json"), SavedStore)
            found = {name: (directory / name).stat().st_size for name in FILES}
        except OSError as error:
            raise DataError(f"no token store ({error.strerror}: {error.filename})", path=directory) from error
        except ValueError as error:
            raise DataError(f"store.json is damaged ({error}); {remedy}", path=directory) from error
        if meta.version != VERSION:
            raise DataError(
                f"expected a token store of version {VERSION}, got {meta.version}; {remedy}", path=directory
            )
        for name, size in found.items():
            if size != meta.bytes.get(name, 0):
                needed = meta.bytes.get(name, 0)
                raise DataError(
                    f"expected {name} to have {needed:,} bytes, got {size:,}; {remedy}", path=directory
                )
        return cls(directory, meta)

    @classmethod
    def build(
        cls,
        directory: str | Path,
        pairs: Iterable[tuple[int, str, str]],
        encode: PairEncoder,
        *,
        max_length: int,
        key: str,
        progress: Callable[[int], None] | None = None,
        processes: int = 0,
    ) -> "TokenStore":
        """Build a store, or open it if it exists with the same key.

        A killed build leaves a hidden directory next to the store; the next build resumes from it.
        """
        directory = Path(directory)
        if _has(directory, key):
            return cls.open(directory)
        _remove_leftovers(directory)
        settings = EncodingSettings(encode, max_length, processes or cores(), progress)
        with _build_directory(directory) as temporary:
            try:
                report = write(temporary, pairs, key, settings)
                if not report["kept"]:
                    raise DataError(
                        f"no pair is left of {report['pairs']:,}: {report['empty']:,} have an empty side, "
                        f"{report['too_long']:,} have more than {max_length} tokens; raise max_length or "
                        "give other data"
                    )
                os.replace(temporary / "done.json", temporary / "store.json")
                (temporary / LOCK).unlink(missing_ok=True)
                _replace(temporary, directory, key)
                shutil.rmtree(temporary, ignore_errors=True)  # in case another process finished first
            except (OSError, DataError) as error:
                shutil.rmtree(temporary, ignore_errors=True)
                if isinstance(error, OSError):
                    raise _unwritable(directory, error) from error
                raise
        return cls.open(directory)


@contextmanager
def _build_directory(directory: Path) -> Iterator[Path]:
    """The directory of an unfinished build if no other process uses it; otherwise a new one."""
    place = directory.parent / f".{directory.name}.building"
    try:
        place.mkdir(parents=True, exist_ok=True)
        file = open(place / LOCK, "ab")  # noqa: SIM115  closed below
    except OSError as error:
        raise _unwritable(directory, error) from error
    with file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (ImportError, OSError):
            place = place.with_name(f"{place.name}-{_owner(os.getpid())}")
            place.mkdir()
        yield place


def _unwritable(directory: Path, error: OSError) -> DataError:
    why = f"the token store cannot be written ({error.strerror}); free some space or choose another directory"
    return DataError(why, path=directory)


def _map(path: Path, form: str, columns: int) -> np.ndarray:
    # A plain array over the mapping, because indexing np.memmap itself is ten times slower.
    flat = np.asarray(np.memmap(path, dtype=form, mode="r")) if path.stat().st_size else np.empty(0, form)
    return flat.reshape(-1, columns) if columns > 1 else flat


def _replace(new: Path, directory: Path, key: str) -> None:
    """Move a finished directory to its place, then delete the one it replaces."""
    old = new.with_name(new.name + "-old")
    if _has(directory, key):
        return  # another process finished first
    if directory.exists():
        os.rename(directory, old)
    try:
        os.rename(new, directory)
    except OSError:
        if not _has(directory, key):
            raise
    shutil.rmtree(old, ignore_errors=True)
    files.flush_directory(directory.parent)


def _has(directory: Path, key: str) -> bool:
    with suppress(DataError):
        return TokenStore.open(directory).key == key
    return False


def _owner(process: int) -> str:
    return f"{socket.gethostname()}-{process}"


def _remove_leftovers(directory: Path) -> None:
    """Delete leftovers of killed builds on this machine."""
    start = f".{directory.name}.building-{_owner(0)[:-1]}"
    for path in directory.parent.glob(f"{start}*") if directory.parent.is_dir() else []:
        process = path.name.removeprefix(start).removesuffix("-old")
        if process.isdigit() and not _alive(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True


class MemoryStore:
    """A few pairs in memory, as a TokenStore gives them."""

    def __init__(self, rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        self._rows = [(np.array(one, np.int32), np.array(other, np.int32)) for one, other in rows]
        self.lengths = np.array([list(map(len, row)) for row in rows], np.int32).reshape(-1, 2)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids of source and target."""
        return self._rows[number]


class JoinedStores:
    """Concatenated stores with consecutive example numbers."""

    def __init__(self, stores: Sequence[TokenStore | MemoryStore]) -> None:
        self.stores = list(stores)
        self._first = [0, *accumulate(map(len, self.stores))]  # number of each store's first example

    def __len__(self) -> int:
        return self._first[-1]

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids of source and target, two read-only int32 arrays."""
        place = bisect_right(self._first, number) - 1
        return self.stores[place][number - self._first[place]]

    @property
    def lengths(self) -> list[np.ndarray]:
        """Lengths [N, 2] of each store."""
        return [store.lengths for store in self.stores]
