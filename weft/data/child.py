"""A forked process that encodes lines as arrays, piece by piece.

It inherits the vocabulary's cache and extends it. Lines arrive as text through a pipe; the arrays are
returned as files, and one byte signals that they are ready. The child exits when the pipe is closed or its
parent is killed. Read next: encoded.py, building.py.
"""

import json
import os
import shutil
import signal
import struct
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import numpy as np

from weft.data.encoded import BATCH, EncodedLines, EncodingSettings, Line, encoded
from weft.errors import DataError
from weft.store import jsonfile

PARTS = ("source.ids", "target.ids", "lengths", "numbers")
SIZES = struct.Struct("<3Q")  # lines, bytes of sources, of targets


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
