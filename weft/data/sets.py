"""Public data sets that included recipes need: `weft data get NAME` fetches, checks and converts them.

sets.json is the table: for each file its address (a fixed commit), size, digest and conversion. A file is
fetched, checked and converted in memory, and only then put in its place; existing files are kept.
"""

import gzip
import hashlib
import io
import json
import os
import socket
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from weft.errors import ConfigError, DataError
from weft.store import files

TABLE = Path(__file__).with_name("sets.json")
TIMEOUT_SECONDS = 30


class SetFile(NamedTuple):
    """A file of a set."""

    to: str  # its name in the folder; a plain file is compressed if this ends with .gz
    address: str  # of the download
    bytes: int  # maximum size of the download
    digest: str  # sha256:HEX, or git:HEX, the id of the file in a git repository (SHA-1)
    convert: str = ""  # a key of `CONVERSIONS`; "" for none


class DataSet(NamedTuple):
    """A public data set."""

    name: str
    about: str  # a short description
    source: str  # its repository
    licence: str  # as the repository states it
    files: tuple[SetFile, ...]  # the downloads

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
    """Fetch a file of a set into a folder; False if a file of that name exists, which is left unchanged."""
    place = folder / file.to
    if os.path.lexists(place):
        return False
    try:
        made = _converted(file, _downloaded(file))
        folder.mkdir(parents=True, exist_ok=True)
        return files.create(place, made)  # does not overwrite a file
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        raise DataError(f"{file.address}: {_trouble(error)}") from None
    except OSError as error:
        why = error.strerror or str(error)
        hint = "free some space or pass another --folder"
        raise DataError(f"cannot be written ({why}); {hint}", path=place) from None


def _downloaded(file: SetFile) -> bytes:
    """The content at the address of a file, checked."""
    asked = urllib.request.Request(file.address, headers={"User-Agent": "weft"})
    with urllib.request.urlopen(asked, timeout=TIMEOUT_SECONDS) as answer:
        content: bytes = answer.read(file.bytes + 1)
    if len(content) > file.bytes:
        raise DataError(f"{file.address}: expected {file.bytes:,} bytes, got more; get it from its source")
    kind, _, expected = file.digest.partition(":")
    found = hashlib.sha256(content)
    if kind == "git":
        found = hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False)
    if found.hexdigest() != expected:
        raise DataError(
            f"{file.address}: expected the digest {file.digest[:16]}…, got another; run the same command "
            "again, or get the set from its source"
        )
    return content


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
    return f"the connection failed ({why or type(error).__name__}); run the same command again"


def _converted(file: SetFile, content: bytes) -> bytes:
    made = CONVERSIONS[file.convert](content) if file.convert else content
    if file.to.endswith(".gz") and not made.startswith(b"\x1f\x8b"):
        return gzip.compress(made, mtime=0)
    return made


def _labelled(content: bytes) -> bytes:
    """SST-2: a digit and a sentence."""
    rows = [line.split(" ", 1) for line in content.decode("utf-8").split("\n") if line]
    return _table(("label", "text"), rows)


def _questions(content: bytes) -> bytes:
    """TREC: DESC:manner and a question, in ISO-8859-1."""
    pairs = [line.split(" ", 1) for line in content.decode("latin-1").split("\n") if line]
    rows = [[fine.partition(":")[0], fine, text] for fine, text in pairs]
    return _table(("coarse", "fine", "text"), rows)


def _polarity(content: bytes) -> bytes:
    """MR: sentences of a class in each of two members of an archive."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    rows = [
        [label, line.strip()]
        for label, member in (("0", "rt-polarity.neg"), ("1", "rt-polarity.pos"))
        for line in archive.read(f"sentence_polarity/{member}").decode("utf-8").split("\n")
        if line.strip()
    ]
    return _table(("label", "text"), rows)


def _table(header: tuple[str, ...], rows: list[list[str]]) -> bytes:
    return "".join("\t".join(cells) + "\n" for cells in (list(header), *rows)).encode()


CONVERSIONS: Mapping[str, Callable[[bytes], bytes]] = {
    "labelled": _labelled,
    "polarity": _polarity,
    "questions": _questions,
}
