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
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path, PurePath
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from fastapi import Request, Response

from weft.data.magic import check_document
from weft.documents.isolated import DocumentBounds, document_language, document_sentences, translated_document
from weft.errors import DataError
from weft.serve.forms import Json, Upload, client_of, fields, typed, while_there
from weft.serve.limits import Refusal
from weft.serve.schemas import TranslatedFile, TranslateFile
from weft.serve.translation import AUTO, TranslationHandlers, known_domain, notes_on
from weft.text.segments import WrittenSentence
from weft.wording import kind_of

Found = TypeVar("Found")

LENGTH = 10
"""Characters of a sentence on average, at least; a file has no more sentences than fit its characters so."""

AT_ONCE = 4
"""Documents that are opened at the same time, each in a process of its own; one for each client."""

DOCUMENTS, EACH = 32, 4
"""Documents in progress, and those of one client; further ones are refused."""

CPU_SECONDS, BYTES_PER_SECOND = 5, 100_000
"""Seconds of computing to open any document, and bytes for each further one."""

KEPT_SECONDS = 15 * 60
KEPT_BYTES = 100 * 2**20  # of one client, at most

_NAME = re.compile(r"[A-Za-z0-9_-]{32}\.[A-Za-z0-9_.-]{1,100}")


class Shelf:
    """Keeps files that a client fetches later, in a folder that all processes of a user's servers share.

    The name of a file is secret: a client that has it may read the file.
    """

    def __init__(
        self, folder: Path | None = None, *, seconds: int = KEPT_SECONDS, largest: int = KEPT_BYTES
    ) -> None:
        user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
        self.folder = folder or Path(tempfile.gettempdir()) / f"weft-documents-{user}"
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
        kept = f"{secrets.token_urlsafe(24)}.{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)[-100:]}"
        path = self.folder / f"{tag}.{kept}"  # the name that clients see says nothing of them
        try:
            with path.open("xb") as file:
                file.write(data)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return kept

    def get(self, name: str) -> bytes | None:
        """A file, or None if it is unknown or too old."""
        found = self.folder.glob(f"*.{name}") if _NAME.fullmatch(name) else ()
        with suppress(FileNotFoundError):
            return next((path.read_bytes() for path in found if not self._old(path)), None)
        return None

    def _old(self, path: Path) -> bool:
        return time.time() - path.stat().st_mtime > self.seconds

    def _swept(self, tag: str) -> int:
        """Remove old files of all clients; the bytes of the others of this one."""
        size = 0
        for path in self.folder.iterdir():
            try:
                if self._old(path):
                    path.unlink()
                elif path.name.startswith(tag):
                    size += path.stat().st_size
            except FileNotFoundError:  # another process removed it
                continue
        return size


class Documents:
    """The handlers."""

    def __init__(self, translation: TranslationHandlers, shelf: Shelf) -> None:
        self.translation = translation
        self.limits = limits = translation.limits
        self.shelf = shelf
        self.bounds = DocumentBounds(limits.document_characters, max(1, limits.document_characters // LENGTH))
        self._running: Counter[str] = Counter()
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
        if self._running[owner] >= EACH:
            raise Refusal(429, f"{EACH} of your documents are being translated; wait for one", retry_after=5)
        if self._running.total() >= DOCUMENTS:
            raise Refusal(503, "too many documents are being translated; try again later", retry_after=5)
        self._running[owner] += 1
        try:
            return await while_there(request, self._translated(request, given, upload.data, name))
        finally:
            self._running[owner] -= 1
            if not self._running[owner]:
                del self._running[owner]

    async def _translated(self, request: Request, given: TranslateFile, data: bytes, name: str) -> Response:
        owner = client_of(request.scope)
        seconds = min(self.bounds.cpu_seconds, CPU_SECONDS + len(data) // BYTES_PER_SECOND)
        bounds = self.bounds._replace(cpu_seconds=seconds)
        asked = given.source
        if asked.lower() == AUTO:
            characters = self.limits.characters
            named, text = await self._open(owner, document_language, data, name, bounds, characters)
            asked = named or self.translation.likeliest(text)
        run, source, target = self.translation.direction(asked, given.target)
        languages, domain = (source, target), given.domain
        known_domain(run, domain)
        sentences = await self._open(owner, document_sentences, data, name, *languages, bounds)
        found: list[WrittenSentence] = []
        for at in range(0, len(sentences), self.limits.batch_rows):
            part = sentences[at : at + self.limits.batch_rows]
            found += [best[0] for best in await self.translation.found(request, run, target, part, 0, domain)]
        written = await self._open(owner, translated_document, data, name, *languages, found, bounds)
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

    async def _open(
        self, owner: str, step: Callable[..., Coroutine[Any, Any, Found]], *arguments: Any
    ) -> Found:
        """Take a step with a document. A client's second document waits for its first, others do not."""
        async with AsyncExitStack() as places:
            try:
                async with asyncio.timeout(self.limits.deadline_seconds):
                    await places.enter_async_context(self._clients.setdefault(owner, asyncio.Lock()))
                    await places.enter_async_context(self._opening)
            except TimeoutError:
                sentence = "documents of others take all the time; try again later"
                raise Refusal(503, sentence, retry_after=5) from None
            return await step(*arguments)
