"""Public data sets that included recipes need: `weft data get NAME` fetches, checks and converts them.

sets.json is the table: for each file its address (a fixed commit), size, digest and conversion. A file is
fetched into NAME.part, resumed after an interruption, checked, converted in memory and only then put in its
place; existing files are kept. Nothing is unpacked to disk, so no archive chooses where a member is written.
"""

import gzip
import hashlib
import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from weft.data.archive import read_member
from weft.errors import ConfigError, DataError
from weft.store import files

TABLE = Path(__file__).with_name("sets.json")
TIMEOUT_SECONDS = 30
_PIECE = 2**16


class SetFile(NamedTuple):
    """A file of a set.

    to: its name in the folder; a plain file is compressed if this ends with .gz.
    address: of the download.
    bytes: maximum size of the download.
    digest: sha256:HEX, or git:HEX, the id of the file in a git repository (SHA-1).
    convert: a key of `CONVERSIONS`; "" for none.
    """

    to: str
    address: str
    bytes: int
    digest: str
    convert: str = ""


class DataSet(NamedTuple):
    """A public data set.

    about: a short description.
    source: its repository.
    licence: as the repository states it.
    files: the downloads.
    """

    name: str
    about: str
    source: str
    licence: str
    files: tuple[SetFile, ...]

    @property
    def bytes(self) -> int:
        """Size of the download."""
        return sum(file.bytes for file in self.files)


def data_sets() -> dict[str, DataSet]:
    """All sets by name."""
    found: Mapping[str, Any] = json.loads(TABLE.read_text("utf-8"))
    return {
        name: DataSet(name, **{**about, "files": tuple(SetFile(**file) for file in about["files"])})
        for name, about in found.items()
    }


def find_set(name: str) -> DataSet:
    """The set of a name."""
    known = data_sets()
    if name not in known:
        raise ConfigError(f"no data set is called {name!r}; known are {', '.join(known)}")
    return known[name]


def fetch(file: SetFile, folder: Path) -> bool:
    """Fetch a file of a set into a folder, unless a file of that name exists.

    Returns:
        False if a file of this name exists; it is left unchanged.
    """
    place = folder / file.to
    if os.path.lexists(place):
        return False
    part = folder / f"{file.to}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if part.is_symlink():
            raise DataError("is a link, and a download is written here; remove it", path=part)
        _download(file, part)
        made = _converted(file, part)
        created = files.create(place, made)  # does not overwrite a file
        part.unlink()
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        if (
            isinstance(error, urllib.error.HTTPError) and error.code == 416
        ):  # what is here is longer than the file
            part.unlink(missing_ok=True)
        raise DataError(f"{file.address}: {_trouble(error)}") from None
    except OSError as error:
        why = error.strerror or str(error)
        hint = "free some space or pass another --folder"
        raise DataError(f"cannot be written ({why}); {hint}", path=place) from None
    return created


def _download(file: SetFile, part: Path) -> None:
    """Fetch the rest of a file into `part`, then check it."""
    start = part.stat().st_size if part.is_file() else 0
    if start < file.bytes and not (start and _digest(file, part)):
        _receive(file, part, start)
    if not _digest(file, part):
        part.unlink()
        raise DataError(
            f"{file.address}: expected the digest {file.digest[:16]}…, got another; run the same command "
            "again, or get the set from its source"
        )


def _receive(file: SetFile, part: Path, start: int) -> None:
    asked = urllib.request.Request(file.address, headers={"User-Agent": "weft"})
    if start:
        asked.add_header("Range", f"bytes={start}-")
    with urllib.request.urlopen(asked, timeout=TIMEOUT_SECONDS) as answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(
            f"bytes {start}-"
        )
        size = start if resumed else 0
        expected = answer.headers.get("Content-Length")
        whole = size + int(expected) if expected and expected.isdigit() else None
        with open(part, "ab" if resumed else "wb", opener=_no_link) as out:
            while piece := answer.read(_PIECE):
                size += len(piece)
                if size > file.bytes:
                    out.close()
                    part.unlink()
                    raise DataError(
                        f"{file.address}: expected {file.bytes:,} bytes, got more; get it from its source"
                    )
                out.write(piece)
    if whole is not None and size < whole:
        raise ConnectionError(f"expected {whole:,} bytes, got {size:,}")


def _no_link(path: str, flags: int) -> int:
    """Open a file, but no link that somebody has put there."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _digest(file: SetFile, path: Path) -> bool:
    """Whether a file has the digest of the table."""
    if not path.is_file():
        return False
    kind, _, expected = file.digest.partition(":")
    digest = hashlib.sha256()
    if kind == "git":
        digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with open(path, "rb") as content:
        while piece := content.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest() == expected


def _trouble(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        answer = f"the server answers {error.code} ({error.reason})"
        return f"{answer}; get the set from its source, or try again later"
    why = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(why, socket.gaierror):
        return (
            "the server is not found, so this machine may have no network; run the same command on one that "
            "has, and copy its folder"
        )
    return f"the connection failed ({why or type(error).__name__}); run the same command again, it continues"


def _converted(file: SetFile, part: Path) -> bytes:
    made = CONVERSIONS[file.convert](part) if file.convert else part.read_bytes()
    if file.to.endswith(".gz") and not made.startswith(b"\x1f\x8b"):
        return gzip.compress(made, mtime=0)
    return made


def _labelled(path: Path) -> bytes:
    """SST-2: a digit and a sentence."""
    rows = [line.split(" ", 1) for line in path.read_text("utf-8").split("\n") if line]
    return _table(("label", "text"), rows)


def _questions(path: Path) -> bytes:
    """TREC: DESC:manner and a question, in ISO-8859-1."""
    pairs = [line.split(" ", 1) for line in path.read_text("latin-1").split("\n") if line]
    rows = [[fine.partition(":")[0], fine, text] for fine, text in pairs]
    return _table(("coarse", "fine", "text"), rows)


def _polarity(path: Path) -> bytes:
    """MR: sentences of a class in each of two members of an archive."""
    rows = [
        [label, line.strip()]
        for label, member in (("0", "rt-polarity.neg"), ("1", "rt-polarity.pos"))
        for line in read_member(path, f"sentence_polarity/{member}").decode("utf-8").split("\n")
        if line.strip()
    ]
    return _table(("label", "text"), rows)


def _table(header: tuple[str, ...], rows: list[list[str]]) -> bytes:
    return "".join("\t".join(cells) + "\n" for cells in (list(header), *rows)).encode()


CONVERSIONS: Mapping[str, Callable[[Path], bytes]] = {
    "labelled": _labelled,
    "polarity": _polarity,
    "questions": _questions,
}
