"""Write a token store with several processes, and resume after an interruption.

Pairs are read in pieces. The first piece is encoded in this process, which fills the vocabulary's cache;
later ones are encoded by forked children, and the results are appended here in order, so the number of
processes does not change the store. Every JOURNAL pairs the files are flushed and done.json records their
sizes. After a crash the files are truncated to these sizes and the build resumes.

A child inherits the vocabulary's cache and extends it. Lines and arrays go through a pipe; the child exits
when the pipe is closed or its parent is killed. Read next: store.py.
"""

import json
import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

import numpy as np

from weft.errors import DataError
from weft.store import files, jsonfile

FILES: dict[str, tuple[str, int]] = {  # name: type, columns
    "source.ids": ("<i4", 1),
    "target.ids": ("<i4", 1),
    "lengths": ("<i4", 2),
    "ends": ("<i8", 2),  # end of each example in the two id files
    "numbers": ("<i8", 1),  # line number in the source file
}

BATCH = 2_000  # lines encoded at a time

PIECE = 2**15  # lines that a process is given at a time

JOURNAL = 2**20
"""Lines between two records in done.json; a killed build loses at most this many."""


class EncodedPairs(NamedTuple):
    """Pairs as token ids, without sos and eos."""

    source: Sequence[Sequence[int]]
    target: Sequence[Sequence[int]]
    cut: int = 0  # number of truncated sources


PairEncoder = Callable[[list[str], list[str]], EncodedPairs]
"""Encodes lists of sources and targets of equal length."""

Line = tuple[int, str, str]  # line number, source, target


class EncodingSettings(NamedTuple):
    """The encoder of both sides, the most tokens of a side, and how many processes encode."""

    encode: PairEncoder
    max_length: int
    processes: int
    progress: Callable[[int], None] | None


class EncodedLines(NamedTuple):
    """Arrays of some lines, without `ends`, which are computed when the arrays are appended."""

    parts: dict[str, bytes]  # source.ids, target.ids, lengths, numbers
    report: dict[str, int]


VERSION = 2


class SavedStore(jsonfile.Schema):
    """store.json; while a store is built done.json, its progress."""

    version: int
    key: str
    report: dict[str, jsonfile.Count]
    bytes: dict[str, jsonfile.Count]


def cores() -> int:
    """Number of processes for a build: one per core, or 1 where forking is unavailable or unsafe."""
    if not hasattr(os, "fork") or sys.platform == "darwin":  # a forked child may crash on macOS
        return 1
    if current_process().daemon:  # a worker of a multiprocessing.Pool, which may have no children
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write(directory: Path, pairs: Iterable[Line], key: str, settings: EncodingSettings) -> dict[str, int]:
    """Write the arrays, resuming an earlier build with the same key.

    Returns the numbers of pairs read, kept, left out as too long, and left out because a side is empty, and
    of sources that were truncated.
    """
    report = _resumed(directory, key)
    lines = iter(pairs)
    next(islice(lines, report["pairs"], report["pairs"]), None)  # skip the finished ones
    with ExitStack() as stack:
        opened: dict[str, BinaryIO] = {}
        for name in FILES:
            opened[name] = stack.enter_context(open(directory / name, "ab"))
        ends = np.array([[opened[name].tell() // 4 for name in ("source.ids", "target.ids")]], dtype=np.int64)
        noted = report["pairs"]
        found = _encoded(directory, lines, settings)
        try:
            for piece in found:
                ends = _append(opened, piece, ends)
                report = {name: report[name] + piece.report[name] for name in report}
                if settings.progress is not None:
                    settings.progress(report["pairs"])
                if report["pairs"] - noted >= JOURNAL:
                    noted = report["pairs"]
                    _note(directory, opened, key, report)
        finally:
            found.close()
        _note(directory, opened, key, report)
    return report


def _encoded(
    directory: Path, lines: Iterator[Line], settings: EncodingSettings
) -> Generator[EncodedLines, None, None]:
    """Encode all lines in order; the first piece in small steps, to show progress early."""
    yield from _encoded_here(islice(lines, PIECE), settings)
    next_one = next(lines, None)
    if next_one is None:
        return
    lines = chain([next_one], lines)
    if settings.processes < 2:
        yield from _encoded_here(lines, settings)
        return
    with ExitStack() as stack:
        free = deque(stack.enter_context(Child(directory, settings)) for _ in range(settings.processes))
        busy: deque[Child] = deque()
        while piece := list(islice(lines, PIECE)):
            if not free:
                yield from busy[0].answer()
                free.append(busy.popleft())
            busy.append(free.popleft())
            busy[-1].ask(piece)
        for child in busy:
            yield from child.answer()


def _encoded_here(lines: Iterator[Line], settings: EncodingSettings) -> Iterator[EncodedLines]:
    while batch := list(islice(lines, BATCH)):
        yield encoded(batch, settings)


def _append(opened: dict[str, BinaryIO], piece: EncodedLines, ends: np.ndarray) -> np.ndarray:
    """Append a piece to the files; returns the ends of the last example."""
    for name, data in piece.parts.items():
        opened[name].write(data)
    lengths = np.frombuffer(piece.parts["lengths"], dtype="<i4").reshape(-1, 2)
    after = ends + lengths.astype(np.int64).cumsum(0)
    opened["ends"].write(after.astype("<i8").tobytes())
    return after[-1:] if len(after) else ends


def _note(directory: Path, opened: dict[str, BinaryIO], key: str, report: dict[str, int]) -> None:
    """Flush the files and record their sizes."""
    for file in opened.values():
        file.flush()
        os.fsync(file.fileno())
    sizes = {name: file.tell() for name, file in opened.items()}
    note = json.dumps({"version": VERSION, "key": key, "report": report, "bytes": sizes})
    files.replace(directory / "done.json", note.encode())


def _resumed(directory: Path, key: str) -> dict[str, int]:
    """Truncate an unfinished build to its last record and return its counts; zeros if there is none."""
    none = {"pairs": 0, "kept": 0, "too_long": 0, "empty": 0, "cut": 0}
    try:
        note = jsonfile.decode(jsonfile.read_bytes(directory / "done.json"), SavedStore)
        sizes = {name: note.bytes[name] for name in FILES}
        report = {name: note.report[name] for name in none}
        right = note.key == key
        right = right and all((directory / name).stat().st_size >= size for name, size in sizes.items())
    except (OSError, ValueError, KeyError):
        right = False
    if not right:
        for name in (*FILES, "done.json"):
            (directory / name).unlink(missing_ok=True)
        return none
    for name, size in sizes.items():
        os.truncate(directory / name, size)
    return report


def encoded(lines: Sequence[Line], settings: EncodingSettings) -> EncodedLines:
    """Lines as arrays of token numbers; those that are empty or too long are left out and counted."""
    numbers, sources, targets = zip(*lines, strict=True)
    found = settings.encode(list(sources), list(targets))
    rows = found.source, found.target
    lengths = np.array([list(map(len, side)) for side in rows], dtype=np.int64).T  # [N, 2]
    empty = (lengths == 0).any(1)
    too_long = (lengths > settings.max_length).any(1) & ~empty
    kept = np.flatnonzero(~empty & ~too_long)
    parts = {}
    for name, side in zip(("source.ids", "target.ids"), rows, strict=True):
        flat = chain.from_iterable(side if len(kept) == len(lines) else [side[n] for n in kept.tolist()])
        parts[name] = np.fromiter(flat, dtype="<i4").tobytes()
    parts["lengths"] = lengths[kept].astype("<i4").tobytes()
    parts["numbers"] = np.array(numbers, dtype="<i8")[kept].tobytes()
    left = {"too_long": int(too_long.sum()), "empty": int(empty.sum()), "cut": found.cut}
    return EncodedLines(parts, {"pairs": len(lines), "kept": len(kept), **left})


class Child:
    """A child process, seen from the parent."""

    def __init__(self, directory: Path, settings: EncodingSettings) -> None:
        self._directory = directory
        context = get_context("fork")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, settings))
        with warnings.catch_warnings():
            # Forking is safe: the child only encodes, so it needs no lock of other threads.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        other.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.close()
        if kind is not None:
            self._process.kill()
        self._process.join()

    def ask(self, lines: Sequence[Line]) -> None:
        """Send lines; the child must be idle."""
        try:
            self._pipe.send(lines)
        except ConnectionError:
            raise self._ended() from None

    def answer(self) -> list[EncodedLines]:
        """Wait for the arrays of the lines sent last."""
        try:
            found: list[EncodedLines] | DataError = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise self._ended() from None
        if isinstance(found, DataError):
            raise found
        return found

    def _ended(self) -> DataError:
        self._process.join()
        code = self._process.exitcode or 0
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return DataError(
            f"a process that encoded text {how}; run the same command again", path=self._directory
        )


def _serve(pipe: Connection, settings: EncodingSettings) -> None:
    """The child's main loop; does not return."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if threading.current_thread() is threading.main_thread():
                signal.signal(number, signal.SIG_DFL)
        # Close the parent's files; the child must not keep the store's lock or the pipes of other children.
        for begin, end in ((3, pipe.fileno()), (pipe.fileno() + 1, 65536)):
            os.closerange(begin, end)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads do not survive a fork
        while True:  # until EOFError: the pipe is closed
            lines: list[Line] = pipe.recv()
            try:
                pipe.send(list(_encoded_here(iter(lines), settings)))
            except DataError as error:
                pipe.send(error)
    finally:
        os._exit(1)  # without closing or flushing the parent's files a second time
