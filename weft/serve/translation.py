"""LibreTranslate's interface for translators: /translate, /languages, /detect, /health.

Source: libretranslate.com/docs. Not supported: files, suggestions, keys. Read next: answers.py.
"""

import html
import math
import re
from dataclasses import replace

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from weft.serve.answers import translating
from weft.serve.batcher import Batcher, Job
from weft.serve.forms import Json, answered, read
from weft.serve.limits import Limits, Refusal
from weft.serve.requests import Detect, Translate
from weft.serve.responses import Detected, Health, Language, Translated
from weft.serve.served import Served
from weft.text.languages import NAMES

AUTO = "auto"
TAGS = re.compile(r"(<[^<>]*>)")


class Translation:
    """The handlers.

    Args:
        runs: name to run.
        batcher: computes translations.
        limits: limits of requests.
    """

    def __init__(self, runs: dict[str, Served], batcher: Batcher, limits: Limits) -> None:
        self.runs = runs
        self.batcher = batcher
        self.limits = limits

    async def languages(self, request: Request) -> Response:
        """List the source languages, each with its targets."""
        targets: dict[str, set[str]] = {}
        for _, source, target in self._directions():
            targets.setdefault(source, set()).add(target)
        return Json(
            [Language(code, NAMES.get(code, code), sorted(found)) for code, found in sorted(targets.items())]
        )

    async def detect(self, request: Request) -> Response:
        """The most probable languages of a text, best first."""
        given = await read(request, self.limits, Detect)
        return Json(self._detected(self.limits.texts(given.q, "q")[0]))

    async def health(self, request: Request) -> Response:
        """Answer that the process is alive."""
        return Json(Health("ok"))

    async def translate(self, request: Request) -> Response:
        """Translate one text or a list."""
        given = await read(request, self.limits, Translate)
        texts, more = self.limits.texts(given.q, "q"), given.alternatives
        detected = self._detected(" ".join(texts)) if given.source == AUTO else []
        run = self._run(detected[0].language if detected else given.source, given.target)
        found = await self._lines(request, run, given.target, texts, given.format == "html", more)
        best, others = [one[0] for one in found], [one[1:] for one in found]
        spoken = [detected[0]] * len(texts) if detected else UNSET
        answer = Translated(best, others if more else UNSET, spoken)
        if not isinstance(given.q, list):
            answer = Translated(best[0], others[0] if more else UNSET, detected[0] if detected else UNSET)
        return Json(answer)

    async def _lines(
        self, request: Request, run: Served, target: str, texts: list[str], marked: bool, more: int
    ) -> list[list[str]]:
        """The translation of each text and `more` alternatives, line by line or between tags."""
        parts = [TAGS.split(text) if marked else re.split(r"(\r\n|\n|\r)", text) for text in texts]
        lines = [
            html.unescape(part) if marked else part for row in parts for part in row[::2] if part.strip()
        ]
        if len(lines) > self.limits.items:
            raise Refusal(400, f"q: expected at most {self.limits.items} lines, got {len(lines)}")
        assert run.rewriter is not None
        decoding = run.rewriter.decoding
        if more:
            decoding = decoding.with_options({"nbest": more + 1})
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

    def _directions(self) -> list[tuple[Served, str, str]]:
        return [(run, *pair) for run in self.runs.values() if run.ready for pair in run.directions()]

    def _run(self, source: str, target: str) -> Served:
        every = self._directions()
        for run, reads, writes in every:
            if (reads, writes) == (source, target):
                return run
        offered = ", ".join(sorted({f"{reads} to {writes}" for _, reads, writes in every}))
        raise Refusal(400, f"no model for this pair of languages; available: {offered or 'none'}")

    def _detected(self, text: str) -> list[Detected]:
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
            Detected(round(100 * share / total, 1), code)
            for code, share in sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
        ]
