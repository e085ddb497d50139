"""API keys: the file with their hashes, and the rate limit of each key. Read next: guard.py.

A key has 256 random bits, so a plain SHA-256 hides it: there is nothing to guess, and the file does not open
the server. Every request reads the file. A key is valid while a correct line has it; no key is valid while
the file cannot be read.
"""

import contextlib
import hashlib
import importlib
import json
import math
import os
import re
import secrets
import sys
import time
from pathlib import Path
from typing import IO, NamedTuple

from weft.errors import ConfigError
from weft.serve.limits import Refusal, refusal_of_disk
from weft.store import jsonfile

LARGEST = 4 * 2**20  # maximum bytes of the file, which is read for every request
LINE = re.compile(r"(?P<name>[A-Za-z0-9._@-]{1,64}):(?P<hash>[0-9a-f]{64})(?::(?P<limit>[1-9][0-9]{0,8}))?")
FORM = "NAME:SHA256 or NAME:SHA256:REQUESTS_PER_MINUTE"


class Owner(NamedTuple):
    """The owner of a key."""

    name: str
    digest: bytes
    per_minute: int  # requests; 0 for any number


def new_key(name: str) -> tuple[str, str]:
    """A random key and its line for the file, without a limit."""
    key = f"weft_{secrets.token_urlsafe(32)}"
    line = f"{name}:{hashlib.sha256(key.encode()).hexdigest()}"
    if not LINE.fullmatch(line):
        raise ConfigError(f"--new-key {name}: expected 1 to 64 letters, digits or ._@- as the name")
    return key, line


class KeyFile(NamedTuple):
    """The content of a file of keys."""

    owners: dict[bytes, Owner]  # by digest: how long it takes to find one says nothing of another key
    mistakes: tuple[str, ...]  # each with its place; the keys of these lines are not valid


def parsed(content: bytes, path: Path) -> KeyFile:
    """The owners in the bytes of a file. Of a name in two lines, neither key is valid."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"--api-keys {path}: cannot be read (not UTF-8)") from error
    owners: dict[str, Owner] = {}
    mistakes: list[str] = []
    names: set[str] = set()
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        found = LINE.fullmatch(line)
        if not found:  # the line is not shown, as it may contain a key
            mistakes.append(f"{path}:{number}: expected {FORM}; weft serve --new-key NAME prints such a line")
            continue
        name = found["name"]
        if name in names:
            mistakes.append(f"{path}:{number}: a second key of {name}; give it another name")
            owners.pop(name, None)
        else:
            owners[name] = Owner(name, bytes.fromhex(found["hash"]), int(found["limit"] or 0))
        names.add(name)
    return KeyFile({one.digest: one for one in owners.values()}, tuple(mistakes))


class Keys:
    """The keys that a server accepts, read from a file whenever it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = self._read()
        self._file = parsed(self._content, path)
        self._said = ""
        self._spent = Allowances()
        if self._file.mistakes:
            raise ConfigError(self._file.mistakes[0])
        if not self._file.owners:
            raise ConfigError(
                f"--api-keys {path}: expected at least one key; make one with weft serve --new-key NAME"
            )

    def owner(self, key: str) -> Owner | None:
        """The owner of a key; None for an unknown key."""
        self._reread()
        return self._file.owners.get(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())

    def spend(self, owner: Owner) -> None:
        """Take one request from the allowance of a key, which refills evenly and holds those of a minute."""
        if not owner.per_minute:
            return
        now, rate = time.monotonic(), owner.per_minute / 60
        with self._spent as spent:
            left, when = spent.get(owner.name, (float(owner.per_minute), now))
            left = min(float(owner.per_minute), left + (now - when) * rate)
            if left >= 1:
                spent[owner.name] = left - 1, now
                return
        seconds = math.ceil((1 - left) / rate)
        raise Refusal(
            429,
            f"this key may send {owner.per_minute} requests per minute; try again in {seconds} seconds",
            retry_after=seconds,
        )

    def share(self, file: IO[bytes]) -> None:
        """Count the requests of all processes that are forked from now on together, in an empty file."""
        self._spent = Allowances(file)

    def _read(self) -> bytes:
        try:
            return jsonfile.read_bytes(self.path, LARGEST)
        except (OSError, ValueError) as error:  # a ValueError for a pipe, or a path with a NUL
            why = getattr(error, "strerror", None) or error
            raise ConfigError(f"--api-keys {self.path}: cannot be read ({why})") from error

    def _reread(self) -> None:
        try:
            content = self._read()
            if content != self._content:
                self._file = parsed(content, self.path)
            self._content = content
        except ConfigError as error:
            self._say(f"{error}; until it can be read again, no key is accepted")
            raise Refusal(503, "the API keys of this server cannot be read at the moment") from error
        mistakes, said = self._file.mistakes, ""
        if mistakes:
            more = f" (and {len(mistakes) - 1:,} more such lines)" if len(mistakes) > 1 else ""
            said = f"{mistakes[0]}{more}; until then the key is not accepted"
        elif not self._file.owners:
            said = f"{self.path}: has no keys, so none is accepted; add one with weft serve --new-key NAME"
        self._say(said)

    def _say(self, sentence: str) -> None:
        """Tell the operator once."""
        if sentence and sentence != self._said:
            print(sentence, file=sys.stderr, flush=True)
        self._said = sentence


class Allowances:
    """What is left of the allowances, by name: (requests left, when). Used in a `with` statement."""

    def __init__(self, file: IO[bytes] | None = None) -> None:
        self._file = file
        self._own: dict[str, tuple[float, float]] = {}

    def __enter__(self) -> dict[str, tuple[float, float]]:
        if self._file is not None:
            fcntl = importlib.import_module("fcntl")  # Windows has none, nor workers
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            data = os.pread(self._file.fileno(), os.fstat(self._file.fileno()).st_size, 0)
            with contextlib.suppress(ValueError):  # a worker ended while it wrote
                self._own = {name: (left, when) for name, left, when in json.loads(data or b"[]")}
        return self._own

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            since = time.monotonic() - 60  # by then an allowance is full again
            rows = [[name, left, when] for name, (left, when) in self._own.items() if when > since]
            data = json.dumps(rows).encode()
            fcntl = importlib.import_module("fcntl")
            try:
                os.pwrite(self._file.fileno(), data, 0)
                os.ftruncate(self._file.fileno(), len(data))
            except OSError as error:
                raise refusal_of_disk(error) or error from None
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
