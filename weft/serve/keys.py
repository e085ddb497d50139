"""API keys: the file with their hashes, and the rate limit of each key. Read next: guard.py.

A key has 256 random bits, so a plain SHA-256 hides it: there is nothing to guess, and the
file does not open the server.
"""

import hashlib
import hmac
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
from weft.serve.limits import Refusal

LINE = re.compile(r"(?P<name>[A-Za-z0-9._@-]{1,64}):(?P<hash>[0-9a-f]{64})(?::(?P<limit>[1-9][0-9]{0,8}))?")
FORM = "NAME:SHA256 or NAME:SHA256:REQUESTS_PER_MINUTE"


class Owner(NamedTuple):
    """The owner of a key.

    Args:
        name: appears in the access log.
        digest: SHA-256 of the key.
        per_minute: maximum number of requests per minute; 0 for any number.
    """

    name: str
    digest: bytes
    per_minute: int


def new_key(name: str) -> tuple[str, str]:
    """A random key and its line for the file, without a limit.

    Raises:
        ConfigError: the name does not fit into a line.
    """
    key = f"weft_{secrets.token_urlsafe(32)}"
    line = f"{name}:{hashlib.sha256(key.encode()).hexdigest()}"
    if not LINE.fullmatch(line):
        raise ConfigError(f"--new-key {name}: expected 1 to 64 letters, digits or ._@- as the name")
    return key, line


def owners_in(path: Path) -> list[Owner]:
    """The owners in a file of keys.

    Raises:
        ConfigError: it cannot be read, has no key, or a line has another form.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigError(f"--api-keys {path}: cannot be read ({why})") from error
    owners: dict[str, Owner] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = LINE.fullmatch(line.strip())
        if not found:  # the line is not shown, as it may contain a key
            raise ConfigError(
                f"{path}:{number}: expected {FORM}; weft serve --new-key NAME prints such a line"
            )
        if found["name"] in owners:
            raise ConfigError(f"{path}:{number}: a second key of {found['name']}; give it another name")
        limit = int(found["limit"] or 0)
        owners[found["name"]] = Owner(found["name"], bytes.fromhex(found["hash"]), limit)
    if not owners:
        raise ConfigError(
            f"--api-keys {path}: expected at least one key; make one with weft serve --new-key NAME"
        )
    return list(owners.values())


class Keys:
    """The keys that a server accepts. A changed file is read again at the next request.

    Args:
        path: the file, see `owners_in`.

    Raises:
        ConfigError: as `owners_in`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = self._stat()
        self._owners = owners_in(path)
        self._spent = Allowances()

    def owner(self, key: str) -> Owner | None:
        """The owner of a key; None for an unknown key. Every hash is compared, each in constant time."""
        self._reread()
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        found = None
        for one in self._owners:
            if hmac.compare_digest(one.digest, digest):
                found = one
        return found

    def spend(self, owner: Owner) -> None:
        """Take one request from the allowance of a key, which refills evenly and holds one minute's requests.

        Raises:
            Refusal: none is left.
        """
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

    def _reread(self) -> None:
        state = self._stat()
        if state == self._state:
            return
        self._state = state
        try:
            self._owners = owners_in(self.path)
        except ConfigError as error:
            print(f"{error}; the keys read before remain valid", file=sys.stderr, flush=True)

    def _stat(self) -> tuple[int, ...]:
        try:
            found = os.stat(self.path)
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns


class Allowances:
    """What is left of the allowances, by name: (requests left, when). Used in a `with` statement.

    Args:
        file: where processes share it; None for one process. A lock of the file ends with its process.
    """

    def __init__(self, file: IO[bytes] | None = None) -> None:
        self._file = file
        self._own: dict[str, tuple[float, float]] = {}

    def __enter__(self) -> dict[str, tuple[float, float]]:
        if self._file is not None:
            fcntl = importlib.import_module("fcntl")  # Windows has none, nor workers
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            data = os.pread(self._file.fileno(), os.fstat(self._file.fileno()).st_size, 0)
            self._own = {name: (left, when) for name, left, when in json.loads(data or b"[]")}
        return self._own

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            since = time.monotonic() - 60  # by then an allowance is full again
            rows = [[name, left, when] for name, (left, when) in self._own.items() if when > since]
            data = json.dumps(rows).encode()
            os.pwrite(self._file.fileno(), data, 0)
            os.ftruncate(self._file.fileno(), len(data))
            fcntl = importlib.import_module("fcntl")
            fcntl.lockf(self._file, fcntl.LOCK_UN)
