"""LibreTranslate's interface over translators: /translate, /languages, /detect, /health.

Source: libretranslate.com/docs. Not offered: files, suggestions, keys. Read next: answers.py.
"""

import html
import math
import re
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from weft.serve.answers import translating
from weft.serve.batcher import Batcher, Job
from weft.serve.forms import Json, answered, fields
from weft.serve.limits import Limits, Refusal, whole
from weft.serve.served import Served
from weft.text.languages import NAMES

AUTO = "auto"
TAGS = re.compile(r"(<[^<>]*>)")


class Translation:
    """The handlers.

    Args:
        runs: by name.
        batcher, limits: of the server.
    """

    def __init__(self, runs: dict[str, Served], batcher: Batcher, limits: Limits) -> None:
        self.runs = runs
        self.batcher = batcher
        self.limits = limits

    async def languages(self, request: Request) -> Response:
        """Each source language and what it can become."""
        targets: dict[str, set[str]] = {}
        for _, source, target in self._directions():
            targets.setdefault(source, set()).add(target)
        return Json(
            [
                {"code": code, "name": NAMES.get(code, code), "targets": sorted(found)}
                for code, found in sorted(targets.items())
            ]
        )

    async def detect(self, request: Request) -> Response:
        """The likeliest languages of a text, best first."""
        given = await fields(request, self.limits)
        return Json(self._detected(self._worded(given)[0]))

    async def health(self, request: Request) -> Response:
        """That the server answers."""
        return Json({"status": "ok"})

    async def translate(self, request: Request) -> Response:
        """One text or a list."""
        given = await fields(request, self.limits)
        texts, target = self._worded(given), given.get("target")
        source = given.get("source", AUTO)
        for name, value in (("source", source), ("target", target)):
            if not isinstance(value, str) or not value:
                raise Refusal(400, f"{name}: expected a language code; GET /languages lists them")
        form = given.get("format", "text")
        if form not in ("text", "html"):
            raise Refusal(400, "format: expected text or html")
        more = whole(given, "alternatives", 0, 0, self.limits.beam - 1)
        detected = self._detected(" ".join(texts)) if source == AUTO else []
        run = self._run(detected[0]["language"] if detected else str(source), str(target))
        found = await self._lines(request, run, str(target), texts, form == "html", more)
        answer: dict[str, Any] = {"translatedText": [one[0] for one in found]}
        if more:
            answer["alternatives"] = [one[1:] for one in found]
        if detected:
            answer["detectedLanguage"] = [detected[0]] * len(texts)
        return Json(answer if isinstance(given["q"], list) else {key: one[0] for key, one in answer.items()})

    async def _lines(
        self, request: Request, run: Served, target: str, texts: list[str], marked: bool, more: int
    ) -> list[list[str]]:
        """For each text its translation and `more` others; lines and what stands between tags alone."""
        parts = [TAGS.split(text) if marked else re.split(r"(\r\n|\n|\r)", text) for text in texts]
        lines = [
            html.unescape(part) if marked else part for row in parts for part in row[::2] if part.strip()
        ]
        if len(lines) > self.limits.items:
            raise Refusal(400, f"q: expected at most {self.limits.items} lines, got {len(lines)}")
        assert run.rewriter is not None
        decoding = run.rewriter.decoding
        if more:
            decoding = decoding.asked({"nbest": more + 1})
        decoding = replace(decoding, batch_rows=self.limits.batch_rows)
        work = translating(run, target, decoding)
        key = (run.name, target, decoding)
        job = Job(key, work, lines, self.limits.deadline_seconds)
        found = iter(await answered(request, self.batcher, job) if lines else [])
        answers = []
        for row in parts:
            wholes = [list(row) for _ in range(more + 1)]
            for place in range(0, len(row), 2):
                if not row[place].strip():
                    continue
                best = [one.text for one in next(found)]
                for number, kept in enumerate(wholes):
                    text = best[min(number, len(best) - 1)] if best else ""
                    kept[place] = html.escape(text, quote=False) if marked else text
            answers.append(["".join(kept) for kept in wholes])
        return answers

    def _worded(self, given: dict[str, Any]) -> list[str]:
        if "q" not in given:
            raise Refusal(400, "q: the text to translate is missing")
        return self.limits.texts(given["q"], "q")

    def _directions(self) -> list[tuple[Served, str, str]]:
        return [(run, *pair) for run in self.runs.values() if run.ready for pair in run.directions()]

    def _run(self, source: str, target: str) -> Served:
        every = self._directions()
        for run, reads, writes in every:
            if (reads, writes) == (source, target):
                return run
        offered = ", ".join(sorted({f"{reads} to {writes}" for _, reads, writes in every}))
        raise Refusal(
            400, f"no run translates from that language to that one; there are: {offered or 'none'}"
        )

    def _detected(self, text: str) -> list[dict[str, Any]]:
        """By how few pieces a run's source vocabulary spells a text with: those learnt on its language
        need the fewest. It tells the languages of the served runs apart and knows no others.
        """
        lengths: dict[str, float] = {}
        for run, source, _ in self._directions():
            assert run.rewriter is not None
            tokens = run.rewriter.source.encode(text)
            unknown = sum(token == 1 for token in tokens)
            lengths.setdefault(source, (len(tokens) + 5 * unknown) / max(1, len(text.strip())))
        if not lengths:
            raise Refusal(400, "no translator is served, so no language is known")
        shares = {code: math.exp(-20 * length) for code, length in lengths.items()}
        total = sum(shares.values()) or 1.0
        return [
            {"confidence": round(100 * share / total, 1), "language": code}
            for code, share in sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
        ]
