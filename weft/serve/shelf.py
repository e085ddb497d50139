"""Files that a client fetches later, in a folder that all processes of a user's servers share.

The name of a file is secret: a client that has it may read the file. Read next: documents.py.
"""

import os
import re
import secrets
import stat
import tempfile
import time
from pathlib import Path

from weft.serve.limits import Refusal

SECONDS = 15 * 60
LARGEST = 200 * 2**20
"""Maximum bytes of all files."""

_NAME = re.compile(r"[A-Za-z0-9_-]{32}\.[A-Za-z0-9_.-]{1,100}")


class Shelf:
    """Keeps files for some time.

    Args:
        folder: created with the first file; by default in the system's folder for temporary files.
        seconds: after which a file is removed.
        largest: bytes of all files.
    """

    def __init__(self, folder: Path | None = None, *, seconds: int = SECONDS, largest: int = LARGEST) -> None:
        user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
        self.folder = folder or Path(tempfile.gettempdir()) / f"weft-files-{user}"
        self.seconds = seconds
        self.largest = largest

    def put(self, name: str, data: bytes) -> str:
        """Keep a file; the name to get it by.

        Args:
            name: the end of the new name; characters that are unusual in addresses are replaced.
            data: the content.

        Raises:
            Refusal: there is no room, or the folder is not this user's.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        about = self.folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
            raise Refusal(503, "the folder for translated files belongs to another user; ask the operator")
        if self._swept() + len(data) > self.largest:
            raise Refusal(503, "too many translated files are kept; try again later", retry_after=60)
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[-100:]
        kept = f"{secrets.token_urlsafe(24)}.{plain}"
        with (self.folder / kept).open("xb") as file:
            file.write(data)
        return kept

    def get(self, name: str) -> bytes | None:
        """A file, or None if it is unknown or too old."""
        if not _NAME.fullmatch(name):
            return None
        try:
            path = self.folder / name
            return None if self._old(path) else path.read_bytes()
        except FileNotFoundError:
            return None

    def _old(self, path: Path) -> bool:
        return time.time() - path.stat().st_mtime > self.seconds

    def _swept(self) -> int:
        """Remove old files; the bytes of the others."""
        size = 0
        for path in self.folder.iterdir():
            try:
                if self._old(path):
                    path.unlink()
                else:
                    size += path.stat().st_size
            except FileNotFoundError:  # another process removed it
                continue
        return size
