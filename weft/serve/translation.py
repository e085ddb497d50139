"""LibreTranslate's interface: texts (/translate, /detect, ...), and files (/translate_file, /download_file).

A text is translated sentence by sentence. Source: libretranslate.com/docs. Read next: ../text/segments.py;
../documents/isolated.py.
"""

import asyncio
import hashlib
import json
import math
import os
import re
import secrets
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path, PurePath
from typing import Annotated, Any, TypeVar
from weakref import WeakValueDictionary

from fastapi import Depends, Request, Response

from weft.data.languages import NAMES
from weft.data.magic import check_document
from weft.documents.files import ENDINGS
from weft.documents.html import Html
from weft.documents.isolated import DocumentBounds, document_language, document_sentences, translated_document
from weft.documents.plain import Plain
from weft.errors import ConfigError, DataError
from weft.models import Generator
from weft.search.offered import Decoding
from weft.serve.batcher import BatchJob, Stopped, Work
from weft.serve.forms import Json, Upload, answered, client_of, fields, fields_of, is_form, typed, while_there
from weft.serve.limits import Refusal
from weft.serve.schemas import (
    Detect,
    Detected,
    Language,
    Settings,
    Spoken,
    Suggest,
    Translate,
    Translated,
    TranslatedFile,
    TranslateFile,
)
from weft.serve.served import Backend, ServedRun, stoppable
from weft.tasks.predictor import Remarks
from weft.tasks.seq2seq.documents import written
from weft.tasks.seq2seq.glossary import check_domain
from weft.tasks.seq2seq.translator import BestTexts, Translator
from weft.text.segments import Sentence, WrittenSentence
from weft.text.sentences import DocumentPlan, splitter
from weft.wording import kind_of

AUTO = "auto"
SETTLED_MILLISECONDS = 500  # how long LibreTranslate's page waits for another key before it translates
SHOWN = 40  # characters of a sentence in an error
SUGGESTIONS_BYTES = 100 * 2**20  # size of the file of suggestions after which nothing is added


class TranslationHandlers:
    """The handlers."""

    def __init__(self, backend: Backend, *, keyed: bool, suggestions: Path | None) -> None:
        self.runs, self.batcher, self.streams, self.limits = backend
        self.keyed = keyed
        self.suggestions = suggestions
        splitter()

    async def languages(self) -> Response:
        """List the source languages, each with its targets."""
        targets: dict[str, set[str]] = {}
        for _, source, target in self._directions():
            targets.setdefault(source, set()).add(target)
        return Json(
            [
                Language(code=code, name=NAMES.get(code, code), targets=sorted(found))
                for code, found in sorted(targets.items())
            ]
        )

    async def settings(self) -> Response:
        """What LibreTranslate's page and its clients ask a server for before they use it."""
        offered = self._directions()
        if not offered:
            raise Refusal(400, "no translator is served, so there are no settings for its page")
        code = offered[0][2]
        return Json(
            Settings(
                charLimit=self.limits.characters,
                frontendTimeout=SETTLED_MILLISECONDS,
                language={
                    "source": Spoken(code=AUTO, name="Auto Detect"),
                    "target": Spoken(code=code, name=NAMES.get(code, code)),
                },
                supportedFilesFormat=list(ENDINGS),
                filesTranslation=True,
                apiKeys=self.keyed,
                keyRequired=self.keyed,
                suggestions=self.suggestions is not None,
            )
        )

    async def detect(self, given: Annotated[Detect, Depends(fields_of(Detect))]) -> Response:
        """The most probable languages of a text, best first."""
        return Json(self.detected(self.limits.texts(given.q, "q")[0]))

    async def health(self) -> Response:
        """Answer that the process is alive."""
        return Json({"status": "ok"})

    async def suggest(self, given: Annotated[Suggest, Depends(fields_of(Suggest))]) -> Response:
        """Keep a suggestion."""
        if self.suggestions is None:
            raise Refusal(403, "suggestions are disabled on this server")
        row = {"time": datetime.now(UTC).isoformat(timespec="seconds")}
        row |= {"source": given.source, "target": given.target}
        row |= {name: self.limits.text(getattr(given, name), name) for name in ("q", "s")}
        await asyncio.to_thread(_append, self.suggestions, json.dumps(row, ensure_ascii=False) + "\n")
        return Json({"success": True})

    async def translate(
        self, request: Request, given: Annotated[Translate, Depends(fields_of(Translate))]
    ) -> Response:
        """Translate one text or a list."""
        texts, more = self.limits.texts(given.q, "q"), given.alternatives
        if not given.q or (is_form(request) and not all(texts)):
            raise Refusal(400, "q: expected some text, got an empty text")
        detected = self.detected(" ".join(texts)) if given.source.lower() == AUTO else []
        asked = detected[0]["language"] if detected else given.source
        run, source, target = self.direction(asked, given.target)
        known_domain(run, given.domain)
        documents, plan = await asyncio.to_thread(_planned, texts, given.format == "html", source, target)
        found = await self.found(request, run, target, plan.sentences, more, given.domain)
        ranks = [await asyncio.to_thread(_joined, documents, plan, found, rank) for rank in range(more + 1)]
        best, others = ranks[0], [list(one) for one in zip(*ranks[1:], strict=True)]
        listed = isinstance(given.q, list)
        answer = Translated(translatedText=best if listed else best[0])
        if more:
            answer["alternatives"] = [*others] if listed else [*others[0]]
        if detected:
            answer["detectedLanguage"] = [detected[0]] * len(texts) if listed else detected[0]
        if notes := notes_on(plan.sentences, [row[0] for row in found]):
            answer["notes"] = notes
        return Json(answer)

    async def found(
        self,
        request: Request,
        run: ServedRun,
        target: str,
        sentences: list[Sentence],
        more: int,
        domain: str,
    ) -> list[list[WrittenSentence]]:
        """The translation of each sentence and at most `more` alternatives, best first."""
        limits = self.limits
        limits.check_sentences(sentences, "q")
        assert run.rewriter is not None
        decoding = run.rewriter.decoding
        if more:
            decoding = decoding.with_settings({"nbest": more + 1})
        if domain:
            decoding = replace(decoding, domain=domain)
        decoding = replace(decoding, batch_rows=limits.batch_rows)
        work = translating(run, target, decoding)
        check = partial(limits.check_tokens, run.rewriter.source.encode, [one.text for one in sentences], "q")
        job = BatchJob((run, target, decoding), work, sentences, limits.deadline_seconds, check=check)
        return await answered(request, self.batcher, job) if sentences else []

    def direction(self, source: str, target: str) -> tuple[ServedRun, str, str]:
        """The run that translates so, and the languages as it names them; letter case is ignored."""
        every = self._directions()
        for run, reads, writes in every:
            if (reads.lower(), writes.lower()) == (source.lower(), target.lower()):
                return run, reads, writes
        offered = ", ".join(sorted({f"{reads} to {writes}" for _, reads, writes in every}))
        raise Refusal(400, f"no model for this pair of languages; available: {offered or 'none'}")

    def likeliest(self, text: str) -> str:
        """The code of the most probable language of a text."""
        return self.detected(text)[0]["language"]

    def detected(self, text: str) -> list[Detected]:
        """Compare the source vocabularies of the runs: the one learnt on the language of the text needs the
        fewest tokens. Only languages of served runs can be detected.
        """
        lengths: dict[str, float] = {}
        for run, source, _ in self._directions():
            assert run.rewriter is not None
            tokens = run.rewriter.source.encode(text)
            unknown = sum(token == 1 for token in tokens)
            lengths.setdefault(source, (len(tokens) + 5 * unknown) / max(1, len(text.strip())))
        if not lengths:
            raise Refusal(400, "no translator is served, so no language can be detected")
        shares = {code: math.exp(-20 * length) for code, length in lengths.items()}
        total = sum(shares.values()) or 1.0
        return [
            Detected(confidence=round(100 * share / total, 1), language=code)
            for code, share in sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
        ]

    def _directions(self) -> list[tuple[ServedRun, str, str]]:
        return [(run, *pair) for run in self.runs.values() for pair in run.directions()]


def known_domain(run: ServedRun, domain: str) -> None:
    """Refuse a domain that a run does not know."""
    assert run.rewriter is not None
    try:
        check_domain(domain, run.rewriter.domains)
    except ConfigError as error:
        raise Refusal(400, str(error)) from None


def translator(
    run: ServedRun,
    target: str,
    decoding: Decoding,
    stopped: Stopped | None = None,
    model: Generator | None = None,
) -> Translator:
    """The translator of a run into one of its languages, or its summariser."""
    rewriter, used = run.rewriter, model or run.opened.model
    assert rewriter is not None and isinstance(used, Generator)
    return rewriter.translator(used if stopped is None else stoppable(used, stopped), decoding, target)


def translating(run: ServedRun, target: str, decoding: Decoding) -> Work:
    """The work that maps sentences to their n best translations, for the batcher."""

    def best(used: Translator, sentence: Sentence, answer: object) -> list[WrittenSentence]:
        if not isinstance(answer, BestTexts):
            raise DataError(f"the sentence {_shown(sentence)}: {answer}")
        return [written(used, sentence, one) for one in answer.found] or [WrittenSentence("")]

    def work(sentences: list[Sentence], stopped: Stopped) -> list[list[WrittenSentence]]:
        used = translator(run, target, decoding, stopped)
        answers = used.attempts([one.text for one in sentences])
        return [best(used, *pair) for pair in zip(sentences, answers, strict=True)]

    return work


def notes_on(sentences: Sequence[Sentence], found: Sequence[WrittenSentence]) -> list[str]:
    """What the translations of sentences lack of them."""
    remarks = Remarks()
    for sentence, one in zip(sentences, found, strict=True):
        remarks.see(_shown(sentence), lost=one.lost, lacking=one.lacking, lacked=one.lacked)
    return remarks.lines()


def _shown(sentence: Sentence) -> str:
    return repr(sentence.text if len(sentence.text) <= SHOWN else f"{sentence.text[:SHOWN]}…")


def _planned(
    texts: Sequence[str], marked: bool, source: str, target: str
) -> tuple[list[Html | Plain], DocumentPlan]:
    """The texts as documents, and the sentences of all of them."""
    documents = [Html(text) if marked else Plain(text) for text in texts]
    return documents, DocumentPlan([segment for one in documents for segment in one.segments], source, target)


def _joined(
    documents: Sequence[Html | Plain],
    plan: DocumentPlan,
    found: Sequence[Sequence[WrittenSentence]],
    rank: int,
) -> list[str]:
    """The documents of the translations of this rank, or of the last one of a sentence that has fewer."""
    rest = iter(plan.joined([row[min(rank, len(row) - 1)] for row in found]))
    return [one.written(list(islice(rest, len(one.segments)))) for one in documents]


def _append(file: Path, line: str) -> None:
    """Add a line to the suggestions, in one piece, since other workers may add theirs."""
    try:
        there = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.fstat(there).st_size > SUGGESTIONS_BYTES:
                raise Refusal(503, "no more suggestions are kept; ask the operator of this server")
            os.write(there, line.encode())
        finally:
            os.close(there)
    except OSError as error:
        print(f"{file}: a suggestion was not kept: {error.strerror}", flush=True)
        raise Refusal(503, "the suggestion cannot be kept; ask the operator of this server") from None


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
