"""How a token store is written: side by side in several processes, and on from where that stopped.

Pairs are read in pieces. The first one is encoded here, which fills the vocabulary's memory of words; those
after it by forked children (child.py), and what they make is appended here in order: the store is the same
bytes, however many processes built it. Every JOURNAL pairs the files are flushed and done.json says how far
they go; a build that was killed is cut back to there and goes on. Read next: encoded.py, store.py.
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

from weft import files, jsonfile
from weft.data.child import Child
from weft.data.encoded import BATCH, Encoded, How, Line, encoded

FILES: dict[str, tuple[str, int]] = {  # name: type, columns
    "source.ids": ("<i4", 1),
    "target.ids": ("<i4", 1),
    "lengths": ("<i4", 2),
    "ends": ("<i8", 2),  # of each example in the two files of ids
    "numbers": ("<i8", 1),  # of the line in its file
}

PIECE = 2**15
"""Lines that a process encodes at a time."""

JOURNAL = 2**20
"""Lines after which what was written is flushed and noted; a build that is killed loses so many at most."""


class Note(jsonfile.Form):
    """A done.json: how far a build has come."""

    key: str
    report: dict[str, jsonfile.Count]
    bytes: dict[str, jsonfile.Count]


def cores() -> int:
    """Processes that can build at a time: where a process can be forked, as many as there are cores."""
    if not hasattr(os, "fork") or sys.platform == "darwin":  # there a forked child may crash
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write(directory: Path, pairs: Iterable[Line], key: str, how: How) -> dict[str, int]:
    """Write the arrays, or what is still missing of them.

    Args:
        directory: of this build alone; what an earlier one under the same key left there is taken.
        pairs: the same ones in the same order.
        key: of what is built.
        how: they are encoded.

    Returns:
        How many pairs were read, kept, left out as too long, left out with an empty side; how many
        sources were cut.
    """
    report = _taken_up(directory, key)
    lines = iter(pairs)
    next(islice(lines, report["pairs"], report["pairs"]), None)  # those that were done
    with ExitStack() as stack:
        opened: dict[str, BinaryIO] = {}
        for name in FILES:
            opened[name] = stack.enter_context(open(directory / name, "ab"))
        ends = np.array([[opened[name].tell() // 4 for name in ("source.ids", "target.ids")]], dtype=np.int64)
        noted = report["pairs"]
        found = _encoded(directory, lines, how)
        try:
            for piece in found:
                ends = _append(opened, piece, ends)
                report = {name: report[name] + piece.report[name] for name in report}
                if how.progress is not None:
                    how.progress(report["pairs"])
                if report["pairs"] - noted >= JOURNAL:
                    noted = report["pairs"]
                    _note(directory, opened, key, report)
        finally:
            found.close()
        _note(directory, opened, key, report)
    return report


def _encoded(directory: Path, lines: Iterator[Line], how: How) -> Generator[Encoded, None, None]:
    """All lines, in order; the first piece in small steps, which shows progress early."""
    yield from _here(islice(lines, PIECE), how)
    next_one = next(lines, None)
    if next_one is None:
        return
    lines = chain([next_one], lines)
    if how.processes < 2:
        yield from _here(lines, how)
        return
    with ExitStack() as stack:
        places = [directory / f"piece-{number}" for number in range(how.processes)]
        free = deque(stack.enter_context(Child(place, how)) for place in places)
        busy: deque[Child] = deque()
        while piece := list(islice(lines, PIECE)):
            if not free:
                yield busy[0].answer()
                free.append(busy.popleft())
            busy.append(free.popleft())
            busy[-1].ask(piece)
        for child in busy:
            yield child.answer()


def _here(lines: Iterator[Line], how: How) -> Iterator[Encoded]:
    while batch := list(islice(lines, BATCH)):
        yield encoded(batch, how)


def _append(opened: dict[str, BinaryIO], piece: Encoded, ends: np.ndarray) -> np.ndarray:
    """The ends of the last example."""
    for name, data in piece.parts.items():
        opened[name].write(data)
    lengths = np.frombuffer(piece.parts["lengths"], dtype="<i4").reshape(-1, 2)
    after = ends + lengths.astype(np.int64).cumsum(0)
    opened["ends"].write(after.astype("<i8").tobytes())
    return after[-1:] if len(after) else ends


def _note(directory: Path, opened: dict[str, BinaryIO], key: str, report: dict[str, int]) -> None:
    """Flush what was written, and say how far it goes."""
    for file in opened.values():
        file.flush()
        os.fsync(file.fileno())
    sizes = {name: file.tell() for name, file in opened.items()}
    note = json.dumps({"key": key, "report": report, "bytes": sizes})
    files.replace(directory / "done.json", note.encode())


def _taken_up(directory: Path, key: str) -> dict[str, int]:
    """Cut what an earlier build left to what its note says; the counts up to there."""
    for path in directory.glob("piece-*"):
        shutil.rmtree(path, ignore_errors=True)
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
