"""LibreTranslate's files: /translate_file takes a document, /download_file gives its translation.

Source: libretranslate.com/docs. Read next: translation.py; ../documents/isolated.py.
"""

import asyncio
import hashlib
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from fastapi import Request, Response

from weft.data.magic import check_document
from weft.documents.isolated import DocumentBounds, document_language, document_sentences, translated_document
from weft.errors import DataError
from weft.serve.forms import Json, Upload, client_of, fields, typed
from weft.serve.limits import Refusal
from weft.serve.schemas import TranslatedFile, TranslateFile
from weft.serve.translation import AUTO, TranslationHandlers, notes_on
from weft.text.segments import WrittenSentence
from weft.wording import kind_of

Found = TypeVar("Found")

LENGTH = 10
"""Characters of a sentence on average, at least; a file has no more sentences than fit its characters so."""

AT_ONCE = 4
"""Documents that are opened at the same time, each in a process of its own; one for each client."""

KEPT_SECONDS = 15 * 60
KEPT_BYTES = 100 * 2**20  # of one client, at most

_NAME = re.compile(r"(?P<owner>[0-9a-f]{16})[A-Za-z0-9_-]{32}\.[A-Za-z0-9_.-]{1,100}")


class Shelf:
    """Keeps files that a client fetches later, in a folder that all processes of a user's servers share.

    The name of a file is secret: a client that has it may read the file.

    Args:
        folder: created with the first file; by default in the system's folder for temporary files.
        seconds: after which a file is removed.
        largest: bytes of the files of one client.
    """

    def __init__(
        self, folder: Path | None = None, *, seconds: int = KEPT_SECONDS, largest: int = KEPT_BYTES
    ) -> None:
        user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
        self.folder = folder or Path(tempfile.gettempdir()) / f"weft-files-{user}"
        self.seconds = seconds
        self.largest = largest

    def put(self, name: str, data: bytes, owner: str = "") -> str:
        """Keep a file; the name to get it by."""
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
        try:
            with (place / kept).open("xb") as file:
                file.write(data)
        except OSError:
            (place / kept).unlink(missing_ok=True)
            raise
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


class Documents:
    """The handlers.

    Args:
        translation: translates sentences.
        shelf: keeps the translations.
    """

    def __init__(self, translation: TranslationHandlers, shelf: Shelf) -> None:
        self.translation = translation
        self.limits = limits = translation.limits
        self.shelf = shelf
        self.bounds = DocumentBounds(limits.document_characters, max(1, limits.document_characters // LENGTH))
        self._opening = asyncio.Semaphore(AT_ONCE)
        self._clients: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def translate_file(self, request: Request) -> Response:
        """Translate a document, batch by batch, so that others are answered in between."""
        fields_given = await fields(request)
        upload = fields_given.get("file")
        if not isinstance(upload, Upload):
            raise Refusal(400, f"file: expected a file as multipart/form-data, got {kind_of(upload)}")
        given = typed({**fields_given, "file": upload.name}, TranslateFile)
        name = PurePath(given.file.replace("\\", "/")).name
        try:
            check_document(upload.data, name)
        except DataError as error:
            raise Refusal(400, str(error)) from None
        owner = client_of(request.scope)
        asked = given.source
        if asked.lower() == AUTO:
            asked = await self._detected(owner, upload.data, name)
        run, source, target = self.translation.direction(asked, given.target)
        languages = (source, target)
        sentences = await self._open(owner, document_sentences, upload.data, name, *languages, self.bounds)
        found: list[WrittenSentence] = []
        for at in range(0, len(sentences), self.limits.batch_rows):
            part = sentences[at : at + self.limits.batch_rows]
            found += [best[0] for best in await self.translation.found(request, run, target, part, 0)]
        written = await self._open(
            owner, translated_document, upload.data, name, *languages, found, self.bounds
        )
        translated = f"{PurePath(name).stem}.{target}{PurePath(name).suffix}"
        kept = await asyncio.to_thread(self.shelf.put, translated, written, owner)
        answer = TranslatedFile(translatedFileUrl=f"{request.base_url}download_file/{kept}")
        if notes := notes_on(sentences, found):
            answer["notes"] = notes
        return Json(answer)

    async def download_file(self, name: str) -> Response:
        """A translated document, for some minutes."""
        data = await asyncio.to_thread(self.shelf.get, name)
        if data is None:
            minutes = self.shelf.seconds // 60
            raise Refusal(404, f"unknown file; a translation is kept for {minutes} minutes, so send it again")
        shown = name.partition(".")[2]
        headers = {"Content-Disposition": f'attachment; filename="{shown}"'}
        return Response(data, media_type="application/octet-stream", headers=headers)

    async def _detected(self, owner: str, data: bytes, name: str) -> str:
        """The language of a document: the one that it names, or that of its beginning."""
        named, text = await self._open(
            owner, document_language, data, name, self.bounds, self.limits.characters
        )
        return named or self.translation.likeliest(text)

    async def _open(self, owner: str, step: Callable[..., Found], *arguments: Any) -> Found:
        """Take a step with a document. A client's second document waits for its first, others do not."""
        lock = self._clients.setdefault(owner, asyncio.Lock())
        async with lock, self._opening:
            return await asyncio.to_thread(step, *arguments)
