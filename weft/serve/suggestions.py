"""LibreTranslate's /suggest: better translations from users, kept in a file of the operator.

Each is one line of JSON. Source: libretranslate.com/docs. Read next: translation.py.
"""

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Response

from weft.serve.forms import Json, fields_of
from weft.serve.limits import Refusal, ServerLimits
from weft.serve.schemas import Suggest

LARGEST = 100 * 2**20
"""Bytes of the file, after which nothing is added."""


class Suggestions:
    """The handler.

    Args:
        limits: limits of requests.
        file: where suggestions are kept; None refuses them.
    """

    def __init__(self, limits: ServerLimits, file: Path | None) -> None:
        self.limits = limits
        self.file = file

    async def suggest(self, given: Annotated[Suggest, Depends(fields_of(Suggest))]) -> Response:
        """Keep a suggestion."""
        if self.file is None:
            raise Refusal(403, "suggestions are disabled on this server")
        row = {"time": datetime.now(UTC).isoformat(timespec="seconds")}
        row |= {"source": given.source, "target": given.target}
        row |= {name: self.limits.text(getattr(given, name), name) for name in ("q", "s")}
        await asyncio.to_thread(self._keep, self.file, json.dumps(row, ensure_ascii=False) + "\n")
        return Json({"success": True})

    def _keep(self, file: Path, line: str) -> None:
        """Add a line, in one piece, since other workers may add theirs."""
        try:
            there = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                if os.fstat(there).st_size > LARGEST:
                    raise Refusal(503, "no more suggestions are kept; ask the operator of this server")
                os.write(there, line.encode())
            finally:
                os.close(there)
        except OSError as error:
            print(f"{file}: a suggestion was not kept: {error.strerror}", flush=True)
            raise Refusal(503, "the suggestion cannot be kept; ask the operator of this server") from None
