"""Limits of requests, and the error for requests beyond them.

The input of clients is checked here once, before it reaches a model. Read next: batcher.py.
"""

import errno
import sys
import traceback
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException

BEAM = 16  # maximum number of hypotheses, answers or choices for one text
MAX_TOKENS = 512  # maximum number of tokens written for one text
LINES = 16  # maximum number of tokens of a request, in multiples of the maximum per text
LOGPROBS = 20  # maximum number of alternatives per token
FORM_BYTES = 10_000  # of a form besides its file
LOG_CHARACTERS = 2000

LESS = "; send less at once"


class Refusal(HTTPException):
    """An error response: a status and a sentence for the client.

    `retry_after` is in seconds, 0 if a new try cannot succeed; `closes` ends the connection, because the body
    was not read to its end; `param`, the wrong field, and `code` are for the routes below /v1.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        retry_after: int = 0,
        closes: bool = False,
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(status, sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after = retry_after
        self.closes = closes
        self.param = param
        self.code = code


def print_error(error: BaseException) -> None:
    """Print the end of a traceback: one request may write a little to the log."""
    print("".join(traceback.format_exception(error))[-LOG_CHARACTERS:], file=sys.stderr, flush=True)


def refusal_of_disk(error: BaseException) -> Refusal | None:
    """The refusal where the system has no room for a file; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    print(f"no room for a client's file: {error}", file=sys.stderr, flush=True)
    sentence = "the server has no disk space left for this; try again later, or ask its operator"
    return Refusal(503, sentence, retry_after=60)


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Limits per request and for all requests together; each is a maximum."""

    body_bytes: int = 1_000_000  # of a request
    characters: int = 20_000  # of all texts of a request
    document_bytes: int = 10_000_000  # of a file to translate
    bodies_bytes: int = 100_000_000  # of all requests in progress; one client may have a quarter
    tokens: int = 1024  # that a model reads of one text; a request may have `LINES` times as many
    items: int = 128  # texts or lines per request
    queue: int = 512  # waiting items; further ones are refused with 429
    streams: int = 8  # streamed answers, including waiting ones
    batch_rows: int = 64  # items per batch
    deadline_seconds: float = 60.0  # until an unanswered request is abandoned
    connections: int = 1000  # open ones; beyond it those without a request are closed
    header_seconds: float = 10.0  # until the header of a request has arrived
    body_seconds: float = 30.0  # until its body has arrived, and until a client reads on in its answer

    @property
    def document_body(self) -> int:
        """Bytes of a form with a file to translate."""
        return self.document_bytes + FORM_BYTES

    @property
    def client_bytes(self) -> int:
        """Bytes of the bodies of all requests of one client."""
        return max(self.bodies_bytes // 4, self.document_body)

    @property
    def document_characters(self) -> int:
        """Characters of a file to translate."""
        return 10 * self.characters

    def text(self, value: str, name: str) -> str:
        """A text from a request, checked."""
        check_most(len(value), self.characters, "characters", name)
        return value

    def texts(self, value: str | Sequence[Sized], name: str) -> list[Any]:
        """A text or a list of texts or of rows of token numbers from a request, checked."""
        found = [value] if isinstance(value, str) else [*value]
        check_most(len(found), self.items, "texts", name)
        check_most(sum(map(len, found)), self.characters, "characters", name)
        return found

    def check_tokens(self, encode: Callable[[Any], Sequence[int]], texts: Sequence[Any], name: str) -> None:
        """Check the numbers of tokens of the texts of a request."""
        counts = [len(encode(text)) for text in texts]
        for place, count in enumerate(counts, 1):
            which = f" in text {place}" if len(counts) > 1 else ""
            check_most(count, self.tokens, "tokens per text", name, f"{which}; shorten or split it")
        check_most(sum(counts), LINES * self.tokens, "tokens per request", name, LESS)

    def check_sentences(self, sentences: Sequence[Any], name: str) -> None:
        """Check the number of sentences of a request: each has a place in the queue."""
        check_most(len(sentences), self.queue, "sentences", name, LESS)


def check_most(count: int, most: int, what: str, name: str, advice: str = "") -> None:
    """Refuse a field with more than is allowed, as in "q: expected at most 70 texts, got 71"."""
    if count > most:
        raise Refusal(400, f"{name}: expected at most {most:,} {what}, got {count:,}{advice}", param=name)
