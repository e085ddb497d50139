"""Write a token store with several processes, and resume after an interruption.

Pairs are read in pieces. The first piece is encoded in this process, which fills the vocabulary's cache;
later ones are encoded by forked children, and the results are appended here in order, so the number of
processes does not change the store. Every JOURNAL pairs the files are flushed and done.json records their
sizes. After a crash the files are truncated to these sizes and the build resumes.

A child inherits the vocabulary's cache and extends it. Lines arrive as text through a pipe; the arrays are
returned as files, and one byte signals that they are ready. The child exits when the pipe is closed or its
parent is killed. Read next: encoded.py, store.py.
"""

import json
import os
import shutil
import signal
import struct
import sys
import threading
import warnings
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from weft.data.encoded import BATCH, EncodedLines, EncodingSettings, Line, encoded
from weft.errors import DataError
from weft.store import files, jsonfile

FILES: dict[str, tuple[str, int]] = {  # name: type, columns
    "source.ids": ("<i4", 1),
    "target.ids": ("<i4", 1),
    "lengths": ("<i4", 2),
    "ends": ("<i8", 2),  # end of each example in the two id files
    "numbers": ("<i8", 1),  # line number in the source file
}

PIECE = 2**15
"""Lines that a process encodes at a time."""

JOURNAL = 2**20
"""Lines between two records in done.json; a killed build loses at most this many."""


PARTS = ("source.ids", "target.ids", "lengths", "numbers")
SIZES = struct.Struct("<3Q")  # lines, bytes of sources, of targets


class Note(jsonfile.Schema):
    """done.json: the progress of a build."""

    key: str
    report: dict[str, jsonfile.Count]
    bytes: dict[str, jsonfile.Count]


def cores() -> int:
    """Number of processes for a build: one per core, or 1 where forking is unavailable or unsafe."""
    if not hasattr(os, "fork") or sys.platform == "darwin":  # a forked child may crash on macOS
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write(directory: Path, pairs: Iterable[Line], key: str, settings: EncodingSettings) -> dict[str, int]:
    """Write the arrays, resuming an earlier build with the same key.

    Args:
        directory: used by this build only; may contain an unfinished build.
        pairs: must have the same order in every attempt.
        key: identifies the content of the store.
        settings: how to encode.

    Returns:
        Numbers of pairs read, kept, left out as too long, and left out because a side is empty; number of
        sources that were truncated.
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
    _remove_pieces(directory)  # again: a child of a killed build may have written after _resumed
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
        places = [directory / f"piece-{number}" for number in range(settings.processes)]
        free = deque(stack.enter_context(Child(place, settings)) for place in places)
        busy: deque[Child] = deque()
        while piece := list(islice(lines, PIECE)):
            if not free:
                yield busy[0].answer()
                free.append(busy.popleft())
            busy.append(free.popleft())
            busy[-1].ask(piece)
        for child in busy:
            yield child.answer()


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
    note = json.dumps({"key": key, "report": report, "bytes": sizes})
    files.replace(directory / "done.json", note.encode())


def _resumed(directory: Path, key: str) -> dict[str, int]:
    """Truncate an unfinished build to its last record and return its counts; zeros if there is none."""
    _remove_pieces(directory)
    none = {"pairs": 0, "kept": 0, "too_long": 0, "empty": 0, "cut": 0}
    try:
        note = jsonfile.decode(jsonfile.read_bytes(directory / "done.json"), Note)
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


def _remove_pieces(directory: Path) -> None:
    for path in directory.glob("piece-*"):
        shutil.rmtree(path, ignore_errors=True)


class Child:
    """A child process, seen from the parent.

    Args:
        path: directory for its files; created and removed for each piece.
        settings: how to encode.
    """

    def __init__(self, path: Path, settings: EncodingSettings) -> None:
        self._path = path
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        with warnings.catch_warnings():
            # Forking is safe: the child only encodes and writes files, so it needs no lock of other threads.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if not self._pid:
            _serve(read, write, path, settings)
        os.close(read)
        os.close(write)

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._to)
        os.close(self._from)
        if self._pid:
            if kind is not None:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        shutil.rmtree(self._path, ignore_errors=True)

    def ask(self, lines: Sequence[Line]) -> None:
        """Send lines; the child must be idle."""
        numbers, sources, targets = zip(*lines, strict=True)
        texts = [_joined(side) for side in (sources, targets)]
        sizes = SIZES.pack(len(lines), *map(len, texts))
        try:
            _send(self._to, sizes + np.array(numbers, dtype="<i8").tobytes() + texts[0] + texts[1])
        except BrokenPipeError:
            self._raise_exit()

    def answer(self) -> EncodedLines:
        """Wait for the arrays of the lines sent last.

        Raises:
            DataError: a line cannot be encoded, or the process died.
            OSError: the arrays could not be written.
        """
        status = os.read(self._from, 1)
        if not status:
            self._raise_exit()
        if status == b"e":
            number, why, file, line = jsonfile.decode(
                (self._path / "error.json").read_bytes(), tuple[int | None, str, str | None, int | None]
            )
            raise OSError(number, why) if number else DataError(why, path=file, line=line)
        report = jsonfile.decode((self._path / "report.json").read_bytes(), dict[str, jsonfile.Count])
        parts = {name: (self._path / name).read_bytes() for name in PARTS}
        shutil.rmtree(self._path)
        return EncodedLines(parts, report)

    def _raise_exit(self) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._pid = 0
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        raise DataError(
            f"a process that encoded text {how}; run the same command again", path=self._path.parent
        )


def _serve(read: int, write: int, path: Path, settings: EncodingSettings) -> None:
    """The child's main loop; does not return."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if threading.current_thread() is threading.main_thread():
                signal.signal(number, signal.SIG_DFL)
        # Close the parent's files; the child must not keep the store's lock.
        low, high = sorted((read, write))
        for begin, end in ((3, low), (low + 1, high), (high + 1, 65536)):
            os.closerange(begin, end)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads do not survive a fork
        while head := _receive(read, SIZES.size):
            _answer(read, head, path, settings)
            failed = (path / "error.json").exists()
            os.write(write, b"e" if failed else b"k")
        code = 0
    finally:
        os._exit(code)  # without closing or flushing the parent's files a second time


def _answer(read: int, head: bytes, path: Path, settings: EncodingSettings) -> None:
    count, *sizes = SIZES.unpack(head)
    numbers = np.frombuffer(_receive(read, 8 * count), dtype="<i8").tolist()
    sides = [_receive(read, size).decode("utf-8", "surrogatepass").split("\n") for size in sizes]
    lines = list(zip(numbers, *sides, strict=True))
    path.mkdir()
    try:
        pieces = [encoded(lines[start : start + BATCH], settings) for start in range(0, count, BATCH)]
        for name in PARTS:
            (path / name).write_bytes(b"".join(piece.parts[name] for piece in pieces))
        total = {name: sum(piece.report[name] for piece in pieces) for name in pieces[0].report}
        (path / "report.json").write_text(json.dumps(total))
    except DataError as error:
        (path / "error.json").write_text(json.dumps([0, error.why, error.path, error.line]))
    except OSError as error:
        (path / "error.json").write_text(json.dumps([error.errno, error.strerror, None, None]))


def _joined(texts: Sequence[str]) -> bytes:
    whole = "\n".join(texts)
    if whole.count("\n") >= len(texts):  # a line break inside a text counts as white space
        whole = "\n".join(text.replace("\n", " ") for text in texts)
    return whole.encode("utf-8", "surrogatepass")


def _send(to: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(to, view) :]


def _receive(read: int, size: int) -> bytes:
    """Exactly `size` bytes; b"" at the end of the pipe."""
    parts = []
    while size:
        part = os.read(read, min(size, 2**20))
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
