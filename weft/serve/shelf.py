"""Files that a client fetches later, in a folder that all processes of a user's servers share.

The name of a file is secret: a client that has it may read the file. Read next: documents.py.
"""

import hashlib
import os
import re
import secrets
import stat
import tempfile
import time
from pathlib import Path

from weft.serve.limits import Refusal

SECONDS = 15 * 60
LARGEST = 100 * 2**20
"""Maximum bytes of the files of one client."""

_NAME = re.compile(r"(?P<owner>[0-9a-f]{16})[A-Za-z0-9_-]{32}\.[A-Za-z0-9_.-]{1,100}")


class Shelf:
    """Keeps files for some time.

    Args:
        folder: created with the first file; by default in the system's folder for temporary files.
        seconds: after which a file is removed.
        largest: bytes of the files of one client.
    """

    def __init__(self, folder: Path | None = None, *, seconds: int = SECONDS, largest: int = LARGEST) -> None:
        user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
        self.folder = folder or Path(tempfile.gettempdir()) / f"weft-files-{user}"
        self.seconds = seconds
        self.largest = largest

    def put(self, name: str, data: bytes, owner: str = "") -> str:
        """Keep a file; the name to get it by.

        Args:
            name: the end of the new name; characters that are unusual in addresses are replaced.
            data: the content.
            owner: the client, whose files alone count for the limit.

        Raises:
            Refusal: the client has no room left, or the folder is not this user's.
        """
        tag = hashlib.sha256(owner.encode()).hexdigest()[:16]
        self.folder.mkdir(mode=0o700, exist_ok=True)
        about = self.folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
            raise Refusal(503, "the folder for translated files belongs to another user; ask the operator")
        if self._swept(tag) + len(data) > self.largest:
            raise Refusal(429, "too many of your translated files are kept; fetch them later", retry_after=60)
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[-100:]
        kept = f"{tag}{secrets.token_urlsafe(24)}.{plain}"
        place = self.folder / tag
        place.mkdir(mode=0o700, exist_ok=True)
        with (place / kept).open("xb") as file:
            file.write(data)
        return kept

    def get(self, name: str) -> bytes | None:
        """A file, or None if it is unknown or too old."""
        found = _NAME.fullmatch(name)
        if not found:
            return None
        try:
            path = self.folder / found["owner"] / name
            return None if self._old(path) else path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _old(self, path: Path) -> bool:
        return time.time() - path.stat().st_mtime > self.seconds

    def _swept(self, tag: str) -> int:
        """Remove old files of all clients; the bytes of the others of this one."""
        size = 0
        for path in self.folder.glob("*/*"):
            try:
                if self._old(path):
                    path.unlink()
                elif path.parent.name == tag:
                    size += path.stat().st_size
            except FileNotFoundError:  # another process removed it
                continue
        return size
