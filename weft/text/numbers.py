"""Numbers in texts: a translation must have those of its source, as they are or as its language writes them.

Dates, times, versions, keys (Ctrl+F5, Cmd+Q), codes (A4, UTF-8), amounts of money and temperatures count as
one number each.
Read next: placeholders.py; ../tasks/seq2seq/translator.py, which uses both.
"""

import re
from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import regex

from weft.text.characters import named
from weft.text.placeholders import became_words, differing, restored, spans, unchanged
from weft.text.segments import Links, Span, WrittenSentence
from weft.words import base

Languages = tuple[str, str]  # the codes of source and target; "" if they are not known

_POINT = {
    "am", "bn", "cy", "en", "fa", "fil", "ga", "gu", "he", "hi", "ja", "kn", "km", "ko", "ml", "mr", "ms",
    "mt", "my", "ne", "pa", "si", "sw", "ta", "te", "th", "tl", "ur", "yo", "zh",
}  # fmt: skip
"""Languages with a decimal point; the others have a comma."""

_CURRENCY = (
    r"(?:[€£$¥]|\b(?:AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|PLN|SEK|USD|ZAR)(?!\w))"
)
_SPACE = r"[ \u00a0\u202f]"
_DEGREES = r"°[ \u00a0\u202f]?[CF](?!\w)"
_HELD = (
    r"(?:\b(?:Alt|AltGr|Cmd|Command|Control|Ctrl|Maj|Mayús|Option|Shift|Strg|Umschalt|Win|Windows)\s?\+\s?)+"
)
_KEYS = rf"(?:{_HELD}(?=[A-Z]?\d))?(?<![A-Za-z\d_])"
_CODE = (
    r"(?:\$?[A-Z]{1,9}_?\$?|[a-z]{1,2}|[A-Z][a-z])\d[A-Za-z\d_]*(?:\.\d+)*"
    r"|[A-Z]{1,9}(?:-[A-Z\d]{1,9}){0,5}-\d[A-Z\d]*(?:-\d+)*"
)
_MONEY = (
    rf"{_CURRENCY}{_SPACE}?\d+(?:[.,]\d+)*"
    rf"|(?<![\d.,])\d+(?:[.,]\d+)*{_SPACE}?(?:{_CURRENCY}|{_DEGREES})"
)
CODES = rf"{_KEYS}(?:{_CODE})|{_HELD}[A-Z](?!\w)|{_MONEY}"
"""Keys, codes and amounts: they have letters, but no words; an expression of JavaScript, too."""

_CODES = regex.compile(CODES)
_FORM = regex.compile(
    rf"{_KEYS}(?P<code>{_CODE})|{_HELD}(?P<key>[A-Z])(?!\w)"
    r"|(?P<date>\d{1,4}(?P<between>[-/.])\d{1,2}(?P=between)\d{1,4}(?:\.\d+)*+|\d{1,2}:\d\d(?::\d\d)?)(?!\d)"
    rf"|(?:(?P<currency>{_CURRENCY}){_SPACE}?)?(?P<sign>(?<![\p{{L}}\p{{N}}_)\]])[-−])?"
    rf"(?P<number>\p{{Nd}}{{1,3}}(?:{_SPACE}\p{{Nd}}{{3}})++(?!\p{{Nd}})(?:,\p{{Nd}}+)?"
    r"|[\p{Nd}¼-¾⅐-⅞]+(?:[.,'’٫٬]\p{Nd}+)*+)"
    rf"(?:{_SPACE}?(?P<currency>{_CURRENCY}|{_DEGREES}))?(?:{_SPACE}?(?P<large>[万萬亿億]))?"
)
_SIGNS = {"€": "EUR", "£": "GBP", "$": "USD", "¥": "JPY"}
_GROUPED = re.compile(r"(?:\d{1,3}(?:,\d{2,3})*,\d{3}|\d+)(?:\.\d+)?")
DIGITS = "2345678"  # those that stand for other numbers
_SEPARATOR = re.compile(r"\D+")
_SIGNS_BETWEEN = re.compile(r" ?[-−–+*/×÷^|&<>=≤≥≈≠~]+ ?|[:;]")
_BEFORE = re.compile(r"(?:[#№§]|(?<!\w)(?:[A-Z\d]{1,9}[-/_:+.])+)?$")
_BEHIND = re.compile(r"(?:[-/_:+.][A-Z\d]{1,9}(?![^\W\d_A-Z]))*[%‰°]?")
_NEAR = 40  # characters beside a number that may belong to it


class Number(NamedTuple):
    """A number in a text."""

    begin: int
    end: int
    text: str
    value: str  # the same for all of its forms


def numbers(text: str, language: str = "") -> list[Number]:
    """The numbers of a text, beside those in placeholders; "" leaves open whether it has a decimal comma."""
    fixed = spans(text)
    return [
        Number(found.start(), found.end(), found.group(), _value(found, language))
        for found in _FORM.finditer(text)
        if not any(begin < found.end() and found.start() < end for begin, end in fixed)
    ]


def codes(text: str) -> list[Span]:
    """Where keys, codes and amounts of money are in a text, which have letters that are not translated."""
    return [found.span() for found in _CODES.finditer(text)]


def unmatched(
    source: str, target: str, languages: Languages, parts: Callable[[str, str], list[Number]] = numbers
) -> tuple[list[Number], list[Number]]:
    """The numbers that a translation lacks, and those that it has too many; or its expressions."""
    left, right = languages if all(languages) else ("", "")
    lacking, added = parts(source, left), parts(target, right)
    for key in (attrgetter("text"), attrgetter("value")):
        there: dict[str, list[Number]] = {}
        for one in added:
            there.setdefault(key(one), []).append(one)
        for one in list(lacking):
            if same := there.get(key(one)):
                lacking.remove(one)
                added.remove(same.pop(0))
    return lacking, added


def wrong_numbers(source: str, target: str, languages: Languages) -> str:
    """What is wrong with the numbers of a translation; empty if they are those of the source."""
    lacking, added = unmatched(source, target, languages)
    need, given = (named([one.text for one in each]) for each in (lacking, added))
    if not need:
        return given and f"expected the numbers of the source, got also {given}; correct the translation"
    what = "numbers" if len(lacking) > 1 else "number"
    return f"expected the {what} {need}, got {given or 'none'}; correct the translation"


def wrong_parts(source: str, target: str) -> str:
    """What is wrong with the placeholders and numbers of a translation between any languages."""
    found = differing(source, target), wrong_numbers(source, target, ("", "")), unchanged(source, target)
    return "; ".join(filter(None, found))


class Renumbered(NamedTuple):
    """A translation with the numbers that it lacked."""

    text: str
    guessed: list[Number]
    """Those for which no word of the translation stands; they are put before the words that follow them."""


def replaced(source: str, found: WrittenSentence, languages: Languages) -> Renumbered:
    """A translation with the numbers that it lacks in place of what they became."""
    links, tried = found.links, [Renumbered(found.text, [])]
    if links is None:
        return tried[0]
    for parts in (expressions, numbers):
        lacking, added = unmatched(source, found.text, languages, parts)
        guessed = [one for one in lacking if not became_words(links, *one[:2])]
        became = [one[:2] for one in lacking if one not in guessed]
        kept = [one[:2] for one in parts(found.text, "") if one[:2] not in [other[:2] for other in added]]
        tried.append(Renumbered(restored(source, found, became, kept), []))
        if len(lacking) == len(added) > 0:
            tried.append(Renumbered(_exchanged(found.text, links, lacking, added), []))
        tried.append(Renumbered(restored(source, found, [one[:2] for one in lacking], kept), guessed))

    def faults(one: Renumbered) -> list[int]:
        both = (unmatched(source, one.text, languages, parts) for parts in (numbers, expressions))
        return [len(lacking) + len(added) for lacking, added in both]

    return min(tried, key=faults)


def _exchanged(text: str, links: Links, lacking: list[Number], added: list[Number]) -> str:
    """A translation with a number of the source, by its attention, in place of each that is wrong."""
    shares = np.array([[_share(links, one, other) for other in lacking] for one in added])
    places = list[tuple[Number, Number]]()
    for _ in added:
        row, column = np.unravel_index(shares.argmax(), shares.shape)
        places.append((added[row], lacking[column]))
        shares[row], shares[:, column] = -1, -1
    for one, other in sorted(places, reverse=True):
        within = text[: one.begin][-1:].isalnum()  # "Presione5" in place of "Presione F5"
        text = text[: one.begin] + " " * within + other.text + text[one.end :]
    return text


def _share(links: Links, target: Number, source: Number) -> float:
    """How much attention a number of the translation has on a number of the source."""
    return float(links.looks(source.begin, source.end)[links.rows([target[:2]])].sum())


class StandIns(NamedTuple):
    """A text with numbers of one digit, which a model knows better, in place of its own."""

    text: str
    own: dict[str, str]  # what each of them stands for

    def put_back(self, translation: str, language: str) -> str | None:
        """The translation with the numbers of the text; None if it does not have each of them once."""
        found = numbers(translation, language)
        if sorted(one.value for one in found) != sorted(self.own):
            return None
        for one in reversed(found):
            translation = translation[: one.begin] + self.own[one.value] + translation[one.end :]
        return translation


def expressions(text: str, language: str = "") -> list[Number]:
    """The numbers of a text with the signs at them; those with only signs between, as 6 + 1 = 7, are one."""
    found = list[Number]()
    for one in numbers(text, language):
        if found and one.begin < found[-1].end:
            continue
        begin = one.begin - len(_BEFORE.search(text[max(0, one.begin - _NEAR) : one.begin])[0])  # type: ignore[index]
        end = one.end + len(_BEHIND.match(text[one.end :][:_NEAR])[0])  # type: ignore[index]
        if found and _SIGNS_BETWEEN.fullmatch(text, found[-1].end, begin):
            begin = found.pop().begin
        whole = text[begin:end]
        found.append(Number(begin, end, whole, one.value if whole == one.text else whole))
    return found


def stand_ins(text: str, language: str, reads: Callable[[str], bool] = bool) -> StandIns | None:
    """Numbers of one digit in place of those of a text; None if it has none, or more than there are.

    `reads` tells whether a model reads a character.
    """
    found = expressions(text, language)
    free = iter(sorted({*filter(reads, DIGITS)} - {one.text for one in found}))
    own, parts, at = dict[str, str](), list[str](), 0
    for one in found:
        digit = (
            one.text if len(one.text) == 1 and one.text.isdecimal() and reads(one.text) else next(free, "")
        )
        stand = f"F{digit}" if one.value[0].isalpha() and reads("F") else digit
        if not digit or stand in own:
            return None
        own[stand] = one.text
        parts += [text[at : one.begin], stand]
        at = one.end
    return StandIns("".join([*parts, text[at:]]), own) if own else None


def _value(found: "regex.Match[str]", language: str) -> str:
    """What a number is in any form."""
    if found["number"] is None:
        return str(found["code"] or found["key"] or found["date"])
    digits = "".join(str(int(one)) if one.isdecimal() else one for one in found["number"])
    if not language:
        digits = _SEPARATOR.sub(",", digits)
    else:
        point = ".٫" if base(language) in _POINT else ",٫"
        plain = _SEPARATOR.sub(lambda mark: "." if mark[0] in point else ",", digits)
        digits = plain.replace(",", "") if _GROUPED.fullmatch(plain) else digits
    sign = "-" if found["sign"] else ""
    currency, large = (re.sub(r"\s", "", found[name] or "") for name in ("currency", "large"))
    return f"{sign}{digits}{large} {_SIGNS.get(currency, currency)}".strip()
