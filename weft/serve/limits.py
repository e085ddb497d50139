"""What a request may ask for, and the sentence that refuses the rest.

Everything that comes from outside is checked here, once, before a model sees it. Read next: batcher.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
        beam: hypotheses kept, answers returned, choices written.
        max_tokens: written for one text.
        logprobs: alternatives a token.
        queue: items that wait; one more is refused with 429.
        streams: answers being written as they come, waiting ones counted.
        batch_rows: items answered together.
        deadline_seconds: from the request until it is given up.
    """

    body_bytes: int = 1_000_000
    characters: int = 20_000
    items: int = 128
    beam: int = 16
    max_tokens: int = 512
    logprobs: int = 20
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
    """What came, in JSON's words."""
    names = {type(None): "nothing", bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return {**names, list: "a list", dict: "an object"}.get(type(value), "something else")


def whole(given: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """A whole number of a request.

    Raises:
        Refusal: it is none, or out of its range.
    """
    value = given.get(name)
    if value is None or value == "":
        return default
    if isinstance(value, str) and value.strip().lstrip("-").isascii() and value.strip().lstrip("-").isdigit():
        value = int(value[:30])
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refusal(400, f"{name}: expected a whole number, got {kind_of(value)}")
    if not least <= value <= most:
        raise Refusal(400, f"{name}: expected a number from {least} to {most}, got {value}")
    return value


def real(given: Mapping[str, Any], name: str, default: float, least: float, most: float) -> float:
    """A number of a request.

    Raises:
        Refusal: it is none, or out of its range.
    """
    value = given.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(400, f"{name}: expected a number, got {kind_of(value)}")
    if not least <= value <= most:  # not a number is refused here too
        raise Refusal(400, f"{name}: expected a number from {least:g} to {most:g}, got {value:g}")
    return float(value)
