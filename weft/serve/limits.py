"""What a request may ask for, and the sentence that refuses the rest.

Everything that comes from outside is checked here, once, before a model sees it. Read next: batcher.py.
"""

from dataclasses import dataclass
from typing import Any

BEAM = 16
"""Maximum number of hypotheses, answers or choices for one text."""

MAX_TOKENS = 512
"""Maximum number of tokens written for one text."""

LOGPROBS = 20
"""Maximum number of alternatives per token."""


class Refusal(Exception):
    """An answer that is none: a status and a sentence for the client.

    Args:
        status: of HTTP.
        sentence: what was expected and what was found.
        retry_after: seconds after which it may be worth another try; 0 where it never is.
        closes: whether the connection ends with it, since not all that comes was read.
    """

    def __init__(self, status: int, sentence: str, *, retry_after: int = 0, closes: bool = False) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after = retry_after
        self.closes = closes


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request may take, and all of them together.

    Args:
        body_bytes: of a request.
        characters: of a request's texts together.
        items: texts in one list, lines counted.
        queue: items that wait; one more is refused with 429.
        streams: answers being written as they come, waiting ones counted.
        batch_rows: items answered together.
        deadline_seconds: from the request until it is given up.
    """

    body_bytes: int = 1_000_000
    characters: int = 20_000
    items: int = 128
    queue: int = 512
    streams: int = 8
    batch_rows: int = 64
    deadline_seconds: float = 60.0

    def text(self, value: Any, name: str) -> str:
        """One text that a model can read.

        Raises:
            Refusal: it is none, or longer than allowed.
        """
        if not isinstance(value, str):
            raise Refusal(400, f"{name}: expected text, got {kind_of(value)}")
        if len(value) > self.characters:
            raise Refusal(400, f"{name}: expected at most {self.characters:,} characters, got {len(value):,}")
        for place, character in enumerate(value):
            if "\ud800" <= character <= "\udfff":
                raise Refusal(
                    400,
                    f"{name}: half of a surrogate pair (U+{ord(character):04X}) stands at character "
                    f"{place + 1}; send text that is valid Unicode",
                )
        return value

    def texts(self, value: Any, name: str) -> list[str]:
        """A text, or a list of them.

        Raises:
            Refusal: no texts, too many, or too much.
        """
        found = value if isinstance(value, list) else [value]
        if not found:
            raise Refusal(400, f"{name}: expected at least one text, got an empty list")
        if len(found) > self.items:
            raise Refusal(400, f"{name}: expected at most {self.items} texts, got {len(found):,}")
        texts = [self.text(one, name) for one in found]
        if sum(map(len, texts)) > self.characters:
            raise Refusal(
                400,
                f"{name}: expected at most {self.characters:,} characters, got {sum(map(len, texts)):,}",
            )
        return texts


def kind_of(value: Any) -> str:
    """The type of a value, in JSON's words."""
    names = {type(None): "nothing", bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return {**names, list: "a list", dict: "an object"}.get(type(value), "something else")
