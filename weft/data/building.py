"""Write a token store with several processes, and resume after an interruption.

Pairs are read in pieces. The first piece is encoded in this process, which fills the vocabulary's cache;
later ones are encoded by forked children (child.py), and the results are appended here in order, so the
number of processes does not change the store. Every JOURNAL pairs the files are flushed and done.json records
their sizes. After a crash the files are truncated to these sizes and the build resumes.
Read next: encoded.py, store.py.
"""

import json
import os
import shutil
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from weft.data.child import Child
from weft.data.encoded import BATCH, EncodedLines, EncodingSettings, Line, encoded
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
