"""Limits for an untrusted tokenizer.json: slow patterns, texts that grow, panics of the library.

A pattern such as (a+)+$ takes twice as long for each further letter. A normaliser that replaces a by aa
thirty times writes gigabytes. A damaged table makes the library panic, which Python sees as a BaseException
that no `except Exception` stops (`guarded` of vocabulary.py). `check_tokenizer_json` rejects such a file
before anything is built from it, and `Growth` rejects a text that would become too long.
Read next: imported.py.
"""

import base64
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from weft.errors import DataError
from weft.text.vocabulary import guarded

SLOW_SECONDS = 0.05
"""CPU time limit for a text of a few hundred symbols; an ordinary pattern takes a thousandth of it."""

MOST_PATTERNS = 64
LONGER = 32  # a normalised text may be this many times as long as the text,
ROOM = 10_000  # plus this many symbols
LONGEST_RULE = 256  # bytes that a rule of a table of characters may write; Unicode's rules write up to 33
LONGEST_WORD = 1000  # symbols of a word that WordPiece splits; its time grows quadratically with them
LONGEST_AFFIX = 64  # symbols of a prefix or suffix of pieces
_REPEATS = (8, 12, 16, 18, 20, 22, 24, 26, 28, 32)  # small steps, because the time may double with each
_MORE = (40, 52, 68, 88, 114, 148, 192, 250, 325)  # to detect polynomial growth
_LETTERS = "aA0 ._é中\n\u0301"
_FACTORS = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "Lowercase": 3, "ByteLevel": 4, "BertNormalizer": 36}
"""Maximum growth of a text per step (Unicode Standard Annex 15, table 2); other steps do not lengthen it."""


def check_tokenizer_json(content: Mapping[str, Any]) -> None:
    """Reject a tokenizer.json that could use unbounded time or memory."""
    _check_model(content.get("model"))
    _check_template(content.get("post_processor"))
    patterns = set(_patterns([content.get(part) for part in ("normalizer", "pre_tokenizer", "decoder")]))
    if len(patterns) > MOST_PATTERNS:
        raise ValueError(f"it has {len(patterns)} patterns, expected at most {MOST_PATTERNS}")
    for pattern in sorted(patterns):
        _check_pattern(pattern)
    decoded = math.prod(_factor(step) for step in _steps(content.get("decoder"), "decoders"))
    if decoded > LONGER:
        raise ValueError(
            f"its decoder may make a text {decoded:.3g} times as long, expected at most {LONGER}"
        )
    growth = Growth(content.get("normalizer"))
    for token in content.get("added_tokens") or ():
        if token.get("normalized"):
            growth.check(token["content"])


class Growth:
    """Rejects texts that a normaliser, that part of a tokenizer.json, would make far longer.

    A rule of its table that writes too much is a ValueError.
    """

    def __init__(self, normaliser: Any) -> None:
        self._steps = list(_steps(normaliser, "normalizers"))
        self._factor = math.prod(_factor(step) for step in self._steps)
        self._added = sum(len(step.get("prepend", "")) for step in self._steps)

    def check(self, text: str) -> None:
        """Reject a text that would become too long, before it is written."""
        most = ROOM + LONGER * len(text)
        if (len(text) + self._added) * self._factor <= most:
            return
        normalised = text
        for step in self._steps:
            if _length_after(step, normalised) > most:
                raise DataError(
                    f"the tokenizer's normaliser turns {len(text):,} characters into more than {most:,}; "
                    "use another tokenizer"
                )
            normalised = _applied(step, normalised)


def _length_after(step: Mapping[str, Any], text: str) -> int:
    """Length of a text after one step, without writing a text that may be long."""
    kind = step.get("type")
    if kind == "Prepend":
        return len(text) + len(step["prepend"])
    if kind != "Replace":
        return len(_applied(step, text))
    without, marked = (len(_applied({**step, "content": mark}, text)) for mark in ("", "x"))
    return without + (marked - without) * len(step["content"])


def _applied(step: Mapping[str, Any], text: str) -> str:
    with guarded("the tokenizer's normaliser"):
        return _built({"normalizer": step}).normalizer.normalize_str(text)  # type: ignore[no-any-return]


def _built(parts: Mapping[str, Any]) -> Tokenizer:
    plain = json.loads(Tokenizer(models.WordLevel({"a": 0}, "a")).to_str())
    return Tokenizer.from_str(json.dumps({**plain, **parts}))


def _steps(part: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """The single steps of a normaliser or a decoder, in order."""
    if isinstance(part, Mapping) and part.get("type") == "Sequence":
        for step in part[name]:
            yield from _steps(step, name)
    elif isinstance(part, Mapping):
        yield part


def _factor(step: Mapping[str, Any]) -> float:
    """Maximum ratio of a text's lengths after and before a step, not counting what the step prepends."""
    if step.get("type") == "Precompiled":
        longest = longest_rule(base64.b64decode(step["precompiled_charsmap"] or ""))
        if longest > LONGEST_RULE:
            raise ValueError(f"a rule of its table writes {longest} bytes, at most {LONGEST_RULE} may be")
        return longest
    if step.get("type") != "Replace":
        return _FACTORS.get(str(step.get("type")), 1)
    pattern, content = step["pattern"], step["content"]
    if pattern.get("String"):
        return max(1.0, len(content) / len(pattern["String"]))
    return 1.0 + len(content)  # a pattern may match the empty text before each symbol


def longest_rule(table: bytes) -> int:
    """How many bytes a rule of a table of characters writes at most (`precompiled_charsmap`)."""
    if not table:
        return 1
    if len(table) < 4 or (size := int.from_bytes(table[:4], "little")) > len(table) - 4:
        raise ValueError("its table of characters is cut off")
    return max(1, *map(len, table[4 + size :].split(b"\0")))


def _check_model(model: Any) -> None:
    if not isinstance(model, Mapping):
        raise ValueError("it has no model")
    if (model.get("max_input_chars_per_word") or 0) > LONGEST_WORD:
        raise ValueError(f"max_input_chars_per_word is above {LONGEST_WORD}")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if len(model.get(name) or "") > LONGEST_AFFIX:
            raise ValueError(f"{name} is longer than {LONGEST_AFFIX} characters")


def _check_template(part: Any) -> None:
    """Check that the template contains the text exactly once."""
    if not isinstance(part, Mapping):
        return
    for other in part.get("processors") or ():
        _check_template(other)
    if part.get("type") == "TemplateProcessing":
        count = sum("Sequence" in piece for piece in part["single"])
        if count != 1 or len(part["single"]) > LONGEST_AFFIX:
            raise ValueError(f"its template has the text {count} times among {len(part['single'])} pieces")


def _patterns(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        if isinstance(part.get("Regex"), str):
            yield part["Regex"]
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from _patterns(one)


def _check_pattern(pattern: str) -> None:
    """Reject a pattern that takes too long on repetitions of its own or of common symbols."""
    cut = pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str
    own = "".join(dict.fromkeys(re.sub(r"\\\w", "", pattern)))[:64]  # a match may need one of them at its end
    marks = dict.fromkeys([*re.findall(r"\w", own)[:8], *_LETTERS])
    runs = dict.fromkeys(re.findall(r"\w{2,12}", pattern)[:8])
    pairs = {one + two for one in marks for two in marks if one != two} - set(runs)
    for unit in (*marks, *runs, *sorted(pairs)):
        counts = _REPEATS if unit in pairs else (*_REPEATS, *_MORE)
        for text in [unit * count + end for end in ("", "!", "!" + own) for count in counts]:
            if _slow(cut, text) and _slow(cut, text):  # twice, because any machine may pause once
                shown = pattern if len(pattern) <= 80 else pattern[:80] + "…"
                raise ValueError(f"the pattern {shown!r} takes too long on texts such as {text[:24]!r}")


def _slow(cut: Any, text: str) -> bool:
    begun = time.thread_time()
    try:
        with guarded("the pattern"):
            cut(text)
    except DataError:  # the library gave up
        return True
    return time.thread_time() - begun > SLOW_SECONDS
