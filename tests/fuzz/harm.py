"""How valid files are damaged, and what counts as a finding.

Bytes are changed, deleted, duplicated or replaced by those of another file; numbers
and words become ones that often cause errors. Read next: readers.py; __main__.py.
"""

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.readers import Reader
from weft.errors import WeftError

SECONDS = 60
LONGEST = 1200
"""Characters of the one sentence of a refusal."""

TRAPS = [
    b"-1", b"0", b"1", b"9" * 19, b"1" + b"0" * 5000, b"1e999", b"-1e999", b"nan", b"NaN", b"inf", b"null",
    b"true", b"[]", b"{}", b'""', b"[[", b"{" * 50, b"[" * 3000, b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf",
    b"\xed\xa0\x80", b"\r\n", b"\n", b"\t", b" ", b"\xe2\x80\xa8", b'"', b"'", b"\\", b"&a", b"*a", b"<<:",
    b"!!python/object:os.system", b"../../x", b"/dev/zero", b"\x80\x04cos\nsystem\n", b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"A" * 3000,
]  # fmt: skip
NUMBER = re.compile(rb"[0-9]+")


Pick = Callable[[int, int], int]
"""A whole number from the first to the second, both included."""


@st.composite
def harmed(draw: Callable, seeds: Sequence[bytes]) -> bytes:
    """Changes chosen, and minimised, by Hypothesis."""
    return harm(seeds, lambda low, high: draw(st.integers(low, high)))


def harm(seeds: Sequence[bytes], pick: Pick) -> bytes:
    """One of the seeds, with up to six changes."""
    data = bytearray(seeds[pick(0, len(seeds) - 1)])
    for _ in range(pick(1, 6)):
        size = len(data)
        at = pick(0, size)
        to = min(size, at + pick(0, 40))
        kind = pick(0, 7)
        if kind == 0:
            data[at : at + 1] = bytes([pick(0, 255)])
        elif kind == 1:
            del data[at:to]
        elif kind == 2:
            data[at:at] = data[at:to] * pick(1, 50)
        elif kind == 3:
            data[at:to] = TRAPS[pick(0, len(TRAPS) - 1)]
        elif kind in (4, 5):
            found = list(NUMBER.finditer(data))
            if found:
                one = found[pick(0, len(found) - 1)]
                data[one.start() : one.end()] = TRAPS[pick(0, len(TRAPS) - 1)]
        elif kind == 6:
            other = seeds[pick(0, len(seeds) - 1)]
            begin = pick(0, len(other))
            data[at:to] = other[begin : begin + pick(0, 200)]
        else:
            del data[at:]
    return bytes(data)


class Slow(BaseException):
    """A reader takes too long; no reader may catch this."""


@contextmanager
def in_time(seconds: int = SECONDS) -> Iterator[None]:
    """Raise Slow inside the block after this many seconds."""

    def over(number: int, frame: object) -> None:
        raise Slow(f"no answer in {seconds} seconds of the processor")

    before = signal.signal(signal.SIGPROF, over)  # CPU time, so a busy machine causes no findings
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def tried(reader: Reader, folder: Path, data: bytes) -> None:
    """Read the data; raises on a finding.

    Args:
        reader: the reader to test.
        folder: contains the other files it needs; no more files may be left in it.
        data: content of the file.
    """
    path = folder / reader.name
    path.write_bytes(data)
    before = sorted(each.relative_to(folder) for each in folder.rglob("*"))
    try:
        with in_time():
            reader.read(path)
    except WeftError as refusal:
        said = str(refusal)
        assert said and "\n" not in said and len(said) < LONGEST + len(str(path)), (
            f"no sentence: {said[:300]!r}"
        )
    assert sorted(each.relative_to(folder) for each in folder.rglob("*")) == before, "files came or went"
