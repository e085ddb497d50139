"""LibreTranslate's interface for translators: /translate, /languages, /detect, /frontend/settings, /health.

A text is translated sentence by sentence. Source: libretranslate.com/docs. Read next: answers.py;
documents.py and suggestions.py; ../documents/segments.py.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Annotated

from fastapi import Depends, Request, Response

from weft.documents.files import ENDINGS
from weft.documents.html import Html
from weft.documents.plain import Plain
from weft.documents.plan import DocumentPlan
from weft.documents.segments import Sentence, WrittenSentence
from weft.documents.sentences import splitter
from weft.serve.answers import SHOWN, translating
from weft.serve.batcher import Batcher
from weft.serve.forms import Json, answered, fields_of, is_form
from weft.serve.job import BatchJob
from weft.serve.limits import Refusal, ServerLimits
from weft.serve.schemas import Detect, Detected, Language, Settings, Spoken, Translate, Translated
from weft.serve.served import ServedRun
from weft.tasks.remarks import Remarks
from weft.tasks.seq2seq.decoding import GenerationSettings
from weft.text.language_names import NAMES

AUTO = "auto"
SETTLED_MILLISECONDS = 500  # how long its page waits for another key before it translates


class TranslationHandlers:
    """The handlers.

    Args:
        runs: name to run.
        batcher: computes translations.
        limits: limits of requests.
        keyed: whether requests need an API key.
        suggests: whether suggestions are kept.
    """

    def __init__(
        self,
        runs: dict[str, ServedRun],
        batcher: Batcher,
        limits: ServerLimits,
        *,
        keyed: bool,
        suggests: bool,
    ) -> None:
        self.runs = runs
        self.suggests = suggests
        self.keyed = keyed
        self.batcher = batcher
        self.limits = limits
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
                suggestions=self.suggests,
            )
        )

    async def detect(self, given: Annotated[Detect, Depends(fields_of(Detect))]) -> Response:
        """The most probable languages of a text, best first."""
        return Json(self.detected(self.limits.texts(given.q, "q")[0]))

    async def health(self) -> Response:
        """Answer that the process is alive."""
        return Json({"status": "ok"})

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
        documents, plan = await asyncio.to_thread(_planned, texts, given.format == "html", source, target)
        found = await self.found(request, run, target, plan.sentences, more)
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
        self, request: Request, run: ServedRun, target: str, sentences: list[Sentence], more: int
    ) -> list[list[WrittenSentence]]:
        """The translation of each sentence and at most `more` alternatives, best first."""
        self.limits.check_sentences(sentences, "q")
        assert run.rewriter is not None
        decoding = run.rewriter.decoding
        if more:
            decoding = decoding.with_settings(GenerationSettings(nbest=more + 1))
        decoding = replace(decoding, batch_rows=self.limits.batch_rows)
        work = translating(run, target, decoding)
        check = partial(
            self.limits.check_tokens, run.rewriter.source.encode, [one.text for one in sentences], "q"
        )
        key = (run, target, decoding)
        job = BatchJob(key, work, sentences, self.limits.deadline_seconds, check=check)
        return await answered(request, self.batcher, job) if sentences else []

    def _directions(self) -> list[tuple[ServedRun, str, str]]:
        return [(run, *pair) for run in self.runs.values() if run.ready for pair in run.directions()]

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
        return max(self.detected(text), key=itemgetter("confidence"))["language"]

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


def notes_on(sentences: Sequence[Sentence], found: Sequence[WrittenSentence]) -> list[str]:
    """What the translations of sentences lack of them."""
    remarks = Remarks()
    for sentence, one in zip(sentences, found, strict=True):
        place = repr(sentence.text if len(sentence.text) <= SHOWN else f"{sentence.text[:SHOWN]}…")
        remarks.see(place, lost=one.lost, lacking=one.lacking, lacked=one.lacked)
    return remarks.lines()


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
