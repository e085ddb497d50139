"""LibreTranslate's interface: /translate, /languages, /detect, /frontend/settings, /suggest, /health.

A text is translated sentence by sentence. Source: libretranslate.com/docs. Read next: documents.py, whole
files; ../text/segments.py.
"""

import asyncio
import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request, Response

from weft.data.languages import NAMES
from weft.documents.files import ENDINGS
from weft.documents.html import Html
from weft.documents.plain import Plain
from weft.errors import ConfigError, DataError
from weft.models import Generator
from weft.search.offered import Decoding
from weft.serve.batcher import BatchJob, Stopped, Work
from weft.serve.forms import Json, answered, fields_of, is_form
from weft.serve.limits import Refusal
from weft.serve.schemas import Detect, Detected, Language, Settings, Spoken, Suggest, Translate, Translated
from weft.serve.served import Backend, ServedRun, stoppable
from weft.tasks.predictor import Remarks
from weft.tasks.seq2seq.documents import written
from weft.tasks.seq2seq.glossary import check_domain
from weft.tasks.seq2seq.translator import BestTexts, Translator
from weft.text.segments import Sentence, WrittenSentence
from weft.text.sentences import DocumentPlan, splitter

AUTO = "auto"
SETTLED_MILLISECONDS = 500  # how long LibreTranslate's page waits for another key before it translates
SHOWN = 40  # characters of a sentence in an error
SUGGESTIONS_BYTES = 100 * 2**20
"""Size of the file of suggestions after which nothing is added."""


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
