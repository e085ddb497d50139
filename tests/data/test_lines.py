"""Lines: only LF ends a line, N lines in are N out, and invalid text is reported with its place."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from weft.data import files
from weft.data import lines as module
from weft.data.lines import blocks, folding, prose_lines, read_lines
from weft.data.plain import PlainText
from weft.errors import DataError

NOT_ENDS = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh"


def squeeze_many_frames(raw: bytes) -> bytes:
    half = len(raw) // 2
    return zstandard.compress(raw[:half]) + zstandard.compress(raw[half:])


PACK = {
    "": bytes,
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": squeeze_many_frames,
}


@pytest.mark.parametrize("end", PACK)
@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\xef\xbb\xbfone\ntwo\n", ["one", "two"]),
        (b"\n\none\n\n", ["", "", "one", ""]),
        (b"\r\n", [""]),
        (NOT_ENDS.encode() + b"\nx\n", [NOT_ENDS, "x"]),
        ("\ufeff\ufeffx\n".encode(), ["\ufeffx"]),
    ],
    ids=["lf", "no-final-lf", "crlf", "mark", "empty-lines", "only-crlf", "other-separators", "two-marks"],
)
def test_lines_end_at_lf_and_nowhere_else(raw: bytes, lines: list[str], end: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{end}"
    path.write_bytes(PACK[end](raw))
    assert list(read_lines(path)) == lines
    assert list(read_lines(str(path))) == lines
    assert list(read_lines(io.BytesIO(raw))) == lines


@given(
    lines=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"), max_size=9)),
    size=st.integers(1, 7),
)
def test_cutting_the_bytes_anywhere_changes_nothing(lines: list[str], size: int) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    parts = [raw[start : start + size] for start in range(0, len(raw), size)]
    whole = b"".join(block for _, block in blocks(parts, "x"))
    assert whole == raw.removeprefix(b"\xef\xbb\xbf")
    expected = [line.removesuffix("\r") for line in lines]
    if expected:
        expected[0] = expected[0].removeprefix("\ufeff")
    assert list(read_lines(io.BytesIO(raw))) == expected


def test_blocks_know_the_number_of_their_first_line() -> None:
    assert list(blocks([b"a\nb", b"c\nd\ne", b"f"], "x")) == [(1, b"a\n"), (2, b"bc\nd\n"), (4, b"ef")]


def test_an_empty_stream_has_no_lines() -> None:
    assert list(read_lines(io.BytesIO(b""))) == []


def test_a_stream_gives_lines_as_they_come() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as feed:
        lines = read_lines(stream)
        feed.write(b"one\ntw")
        assert next(lines) == "one"
        feed.write(b"o\n")
        assert next(lines) == "two"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            b"ok\n\ncaf\xe9 au\n",
            r"file:3: not UTF-8 \(byte 0xe9 at position 4 of the line\); .*convert the file",
        ),
        (b"ok\n\x00\x01\n", "file:2: a NUL byte, so this is not UTF-8 text"),
        ("ok\nno\n".encode("utf-16-le"), "file:1: a NUL byte.*iconv -f UTF-16LE"),
        (b"ok\ncut \xe2\x82", r"file:2: not UTF-8 \(byte 0xe2 at position 5"),
        (b"surrogate \xed\xa0\x80\n", "file:1: not UTF-8"),
    ],
)
def test_a_line_that_is_no_text_is_named(raw: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(DataError, match=message):
        list(read_lines(tmp_path / "file"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-be", "utf-32-be"])
@pytest.mark.parametrize(
    "text", ["ok\nno\n", "\u0101\u0101", "a\r\n\U0001f642\n", ("\u0101" * 98 + "\n") * 7001]
)
def test_a_byte_order_mark_says_how_a_file_is_decoded(tmp_path: Path, encoding: str, text: str) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""
    (tmp_path / "file").write_bytes((mark + text).encode(encoding))
    assert list(read_lines(tmp_path / "file")) == text.splitlines()
    with open(tmp_path / "file", "rb") as stream:
        assert list(read_lines(stream)) == text.splitlines()


def test_lines_that_end_with_cr_are_lines(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one\rtwo\r\rfour\r")
    assert list(read_lines(tmp_path / "file")) == ["one", "two", "", "four"]
    (tmp_path / "file").write_bytes(b"one\rhalf\r\ntwo\n")
    assert list(read_lines(tmp_path / "file")) == ["one\rhalf", "two"]
    (tmp_path / "file").write_bytes(b"one\r")
    assert list(read_lines(tmp_path / "file")) == ["one"]


def test_one_line_feed_does_not_join_lines_that_end_with_cr(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one\rtwo\rthree\r\nfour\n")
    assert list(read_lines(tmp_path / "file")) == ["one", "two", "three", "four"]
    many = b"a\r" * (2**19 - 1) + b"b\r\nc\r"  # the CRLF is half in the first part that is read
    (tmp_path / "file").write_bytes(many)
    assert many[2**20 - 1 : 2**20 + 1] == b"\r\n"
    assert list(read_lines(tmp_path / "file"))[-2:] == ["b", "c"]


def test_the_place_is_right_far_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"some words\n" * 300_000 + b"\xff\n" + b"more\n" * 10)
    with pytest.raises(DataError, match="file:300001: not UTF-8"):
        list(read_lines(tmp_path / "file"))


def test_missing_empty_and_directory_are_refused_before_the_first_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none: no such file; check the name"):
        read_lines(tmp_path / "none")
    (tmp_path / "empty").touch()
    with pytest.raises(DataError, match="empty: "):
        read_lines(tmp_path / "empty")
    with pytest.raises(DataError, match="a directory; name a file in it"):
        read_lines(tmp_path)
    (tmp_path / "plain.gz").write_text("not packed")
    with pytest.raises(DataError, match=r"plain\.gz: .*not compressed"):
        read_lines(tmp_path / "plain.gz")


def test_a_refused_open_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(DataError, match=r"file: cannot be read \(Permission denied\); check the file"):
        read_lines(tmp_path / "file")


@pytest.mark.parametrize(
    ("end", "harm"),
    [(end, harm) for harm in ("cut", "flip") for end in PACK if end and (end, harm) != (".zst", "flip")],
)
def test_a_damaged_compressed_file_is_named(end: str, harm: str, tmp_path: Path) -> None:
    raw = bytearray(PACK[end](np.random.default_rng(5).bytes(3000).hex().encode() + b"\n"))
    if harm == "cut":
        raw = raw[: len(raw) * 2 // 3]
    else:
        raw[len(raw) // 3] ^= 0xFF
    (tmp_path / f"file{end}").write_bytes(raw)
    with pytest.raises(
        DataError, match=rf"file{end}: damaged compressed file \(.*\); copy or download it again"
    ):
        list(read_lines(tmp_path / f"file{end}"))


def test_a_line_without_end_is_refused_before_memory_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 2**20)
    endless = (b"x" * 2**16 for _ in range(10**9))
    with pytest.raises(DataError, match="file:1: a line longer than 1 MiB"):
        list(blocks(endless, "file"))


@pytest.mark.parametrize("end", PACK)
@pytest.mark.parametrize("words", [["čaj", "na", "kuću"] * 30_000, ["語" * 100_000], ["x" * 29_989]])
def test_a_very_long_line_of_running_text_is_read_as_several(
    end: str, words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "LONGEST", 2**17)  # that of text8 is above the limit, too
    path, text = tmp_path / f"text8{end}", " ".join(words)
    path.write_bytes(PACK[end](f"short\n{text}\nend".encode()))
    first, *lines, last = prose_lines(path)
    assert (first, last) == ("short", "end")
    assert (" " if len(words) > 1 else "").join(lines) == text
    assert max(len(line.encode()) for line in lines) <= module.PIECE + 2
    assert len(folding(path)) == 1 and [*PlainText(path)] == [first, *lines, last]


def test_standard_input_lines_are_counted_right() -> None:
    code = (
        "import sys; from weft.data.lines import read_lines\nprint(len(list(read_lines(sys.stdin.buffer))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"a\n\n\xe2\x80\xa8\n\nb", capture_output=True, check=True
    )
    assert done.stdout == b"5\n"
    done = subprocess.run([sys.executable, "-c", code], input=b"a\n\xff\n", capture_output=True, check=False)
    assert b"DataError: <stdin>:2: not UTF-8" in done.stderr


@pytest.mark.parametrize("end", [".gz", ".xz", ".zst"])
def test_what_unpacks_to_far_more_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    path = tmp_path / f"x{end}"
    path.write_bytes(PACK[end](b"a line\n" * 300_000))
    assert len(list(read_lines(path))) == 300_000  # small files may
    monkeypatch.setattr(files, "FREE_BYTES", 2**20)
    with pytest.raises(DataError, match=r"unpacks to more than 300 times its size"):
        list(read_lines(path))


def test_an_unclear_encoding_is_shown_by_a_word_that_differs() -> None:
    for line in ("naïve", "El niño", "mañana", "only 5 € today"):
        said = module.advice("no such file", line.encode("cp1252"))
        word = next(one for one in line.split() if not one.isascii())
        assert "the encoding is unclear: " in said and f"{word} in WINDOWS-1252" in said, said
