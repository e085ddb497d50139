"""LibreTranslate's files: /translate_file takes a document, /download_file gives its translation.

Source: libretranslate.com/docs. Read next: shelf.py, where translations are kept; translation.py;
../documents/isolated.py.
"""

import asyncio
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from fastapi import Request, Response

from weft.documents.isolated import DocumentBounds, document_language, document_sentences, translated_document
from weft.documents.segments import WrittenSentence
from weft.serve.forms import Json, Upload, fields, typed
from weft.serve.limits import Refusal, ServerLimits, kind_of
from weft.serve.schemas import TranslatedFile, TranslateFile
from weft.serve.shelf import Shelf
from weft.serve.translation import AUTO, TranslationHandlers, notes_on

Found = TypeVar("Found")

LENGTH = 10
"""Characters of a sentence on average, at least; a file has no more sentences than fit its characters so."""

AT_ONCE = 4
"""Documents that are opened at the same time, each in a process of its own; one for each client."""


class Documents:
    """The handlers.

    Args:
        translation: translates sentences.
        limits: limits of requests.
        shelf: keeps the translations.
    """

    def __init__(self, translation: TranslationHandlers, limits: ServerLimits, shelf: Shelf) -> None:
        self.translation = translation
        self.limits = limits
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
        owner = _owner(request)
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


def _owner(request: Request) -> str:
    """The sender of a request: the name of its key, or its address."""
    client = request.client
    return request.scope.get("weft.key") or (client.host if client else "")
