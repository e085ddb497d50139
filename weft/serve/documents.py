"""LibreTranslate's files: /translate_file takes a document, /download_file gives its translation.

Source: libretranslate.com/docs. Read next: shelf.py, where translations are kept; translation.py;
../documents/files.py.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import Response

from weft.documents.files import Document, opened
from weft.documents.pairs import languages
from weft.documents.plan import DocumentPlan
from weft.documents.segments import WrittenSentence
from weft.documents.sentences import base
from weft.serve.forms import Json, Upload, fields, typed
from weft.serve.limits import Refusal, ServerLimits, kind_of
from weft.serve.requests import TranslateFile
from weft.serve.responses import TranslatedFile
from weft.serve.shelf import Shelf
from weft.serve.translation import AUTO, TranslationHandlers

AT_ONCE = 2
"""Documents that are read or written at the same time."""

FIELDS = 10_000
"""Bytes of a request besides its file."""

LENGTH = 10
"""Characters of a sentence on average, at least; a file has no more sentences than fit its characters so."""

ARCHIVES = (".docx", ".odt")
"""Files whose bytes are not lines."""

NAMING = (".tmx", ".xliff", ".xlf")
"""Files that name their languages."""

BEGINNING = 100
"""Texts of another file whose language is detected."""


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
        self._reading = asyncio.Semaphore(AT_ONCE)

    async def translate_file(self, request: Request) -> Response:
        """Translate a document, batch by batch, so that others are answered in between."""
        limits, kind = self.limits, request.headers.get("content-type", "")
        if kind.lower().startswith("multipart/form-data"):
            limits = replace(limits, body_bytes=limits.document_bytes + FIELDS)
        fields_given = await fields(request, limits)
        upload = fields_given.get("file")
        if not isinstance(upload, Upload):
            raise Refusal(400, f"file: expected a file as multipart/form-data, got {kind_of(upload)}")
        given = typed({**fields_given, "file": upload.name}, TranslateFile)
        name = PurePath(given.file.replace("\\", "/")).name
        async with self._reading:
            asked = given.source
            if asked.lower() == AUTO:
                asked = await asyncio.to_thread(self._detected, upload.data, name)
            run, source, target = self.translation.direction(asked, given.target)
            document, plan = await asyncio.to_thread(self._planned, upload.data, name, source, target)
        found: list[WrittenSentence] = []
        for at in range(0, len(plan.sentences), self.limits.batch_rows):
            part = plan.sentences[at : at + self.limits.batch_rows]
            found += [best[0] for best in await self.translation.found(request, run, target, part, 0)]
        async with self._reading:
            kept = await asyncio.to_thread(
                self._kept, document, plan, found, f"{PurePath(name).stem}.{target}{PurePath(name).suffix}"
            )
        return Json(TranslatedFile(f"{request.base_url}download_file/{kept}"))

    async def download_file(self, request: Request) -> Response:
        """A translated document, for some minutes."""
        name = request.path_params["name"]
        data = await asyncio.to_thread(self.shelf.get, name)
        if data is None:
            minutes = self.shelf.seconds // 60
            raise Refusal(404, f"unknown file; a translation is kept for {minutes} minutes, so send it again")
        shown = name.partition(".")[2]
        headers = {"Content-Disposition": f'attachment; filename="{shown}"'}
        return Response(data, media_type="application/octet-stream", headers=headers)

    def _detected(self, data: bytes, name: str) -> str:
        """The language of a document: the one that it names, or that of its beginning."""
        self._check_lines(data, name)
        if PurePath(name).suffix.lower() in NAMING:
            return base(languages([data], name)[0])
        begun = islice(opened(data, name, "", "").segments, BEGINNING)
        text = " ".join(one.text for one in begun)[: self.limits.characters]
        return self.translation.detected(text)[0].language

    def _check_lines(self, data: bytes, name: str) -> None:
        most, lines = self.limits.document_characters, data.count(b"\n") + data.count(b"\r")
        if lines > most and PurePath(name).suffix.lower() not in ARCHIVES:
            raise Refusal(400, f"file: expected at most {most:,} lines, got {lines:,}; send a part of it")

    def _planned(self, data: bytes, name: str, source: str, target: str) -> tuple[Document, DocumentPlan]:
        self._check_lines(data, name)
        most = self.limits.document_characters
        document = opened(data, name, source, target)
        count = sum(len(one.text) for one in document.segments)
        if count > most:
            raise Refusal(
                400, f"file: expected at most {most:,} characters, got {count:,}; send a part of it"
            )
        plan = DocumentPlan(document.segments, source, target)
        if len(plan.sentences) > max(1, most // LENGTH):
            raise Refusal(
                400,
                f"file: expected at most {max(1, most // LENGTH):,} sentences, got {len(plan.sentences):,}; "
                "send a part of it",
            )
        return document, plan

    def _kept(
        self, document: Document, plan: DocumentPlan, found: Sequence[WrittenSentence], name: str
    ) -> str:
        return self.shelf.put(name, document.written(plan.joined(found)))
