"""What a translation keeps of its source: placeholders, tags, entities, addresses and numbers.

A model reads placeholders as they stand. One that its translation lacks is put where the words that it became
are. Numbers stay as they are or as the language writes them; dates, times, versions, keys (Ctrl+F5, Cmd+Q),
codes (A4, UTF-8), amounts of money and temperatures count as one number each.
Read next: moving.py; ../tasks/seq2seq/translator.py, which uses this.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import regex

from weft.text.characters import named
from weft.text.moving import laid, with_tags
from weft.text.segments import InlineText, Links, Mark, Segment, Span, WrittenSentence
from weft.words import base

_ATTRIBUTE = r"""\s+[\w:.-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*')"""
_TAG = rf"<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*+)(?:{_ATTRIBUTE})*\s*(?P<empty>/?)>"
_INNER = r"\{(?:[^{}]|\{[^{}]{0,200}\}){0,200}+\}"
_FORMS = (
    _TAG,
    # addresses
    r"(?:(?:https?|ftps?|file)://|mailto:|www\.(?=\w))(?:(?!\p{Han}|\p{Kana})[^\s<>\"“”«»。、，])*[\w/#=&%~$+-]",
    r"(?:\G|(?<![\w.+-]))[\w.+-]++@[\w-]++(?:\.[\w-]++)+",  # \G: where the last match ended
    r"\b[A-Za-z]:\\[^\s<>\"|?*]*[^\s<>\"|?*.,;:!)]",
    # entities and escapes
    r"&(?:\#\d+|\#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);",
    r"\\[nrt]",
    # templates: blocks, calls, variables of the environment and of browser extensions
    r"<%[^<>%]{0,200}%>|<\?[^<>?]{0,200}\?>|\{%[^{}%]{0,200}%\}|\{\{[^{}]{0,200}\}\}|\$t\([^()]{0,200}\)",
    r"%[A-Z][A-Z0-9_]+%|\$[A-Z][A-Z0-9_]+\$",
    # ICU and Java: {count, plural, one {# file} other {# files}}
    r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal|choice|number|date|time)\b"
    rf"(?:[^{{}}]|{_INNER}){{0,500}}+\}}",
    # printf, Python, gettext, Qt
    r"(?<!\d)%n(?!\w)|(?<!\d)%(?:\d+\$|\([\w.-]+\))?[#0+'-]*+(?:\d++|\*)?+(?:\.(?:\d++|\*))?+(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGcrsaA@]",
    r"(?<!\d)(?<!\d\s)% \d*(?:\.\d+)?[dif](?![\w'’])",
    r"(?<!\d)%L?\d\d?(?![\w%])",
    # names in braces
    r"[$%#]\{[\w.]+\}|\{\s*\$[\w.-]+\s*\}|\{\d+,\s*-?\d+(?::[^{}\s]*)?\}|\{[\w.\[\]]*(?:![rsa])?(?::[^{}\s]*)?\}",
)
_FORM = regex.compile("|".join(f"(?:{form})" for form in _FORMS))
_TAGS = regex.compile(_TAG)
_OTHER = (
    (r"\(\?P<\w+>", "(?:"),  # names of groups
    (r"(?<!\\)([+*?}])\+", r"\1"),  # possessive repetition
    (r"\(\?:\\G\|(\(\?<!\[.*?\]\))\)", r"\1"),
    (r"\(\?!\\p\{Han\}\|\\p\{Kana\}\)", ""),
)
PORTABLE = reduce(lambda form, other: re.sub(other[0], other[1], form), _OTHER, _FORM.pattern)
"""The same expression for programs without the library, in Python's `re` and JavaScript."""
_BRANCHES = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal|choice)\b")
_LETTER = re.compile(r"[^\W_]")
HALF = 0.5  # share of a word's attention from which on it stands for a placeholder


def spans(text: str) -> list[Span]:
    """Where the placeholders of a text are."""
    return [found.span() for found in _FORM.finditer(text)]


def placeholders(text: str) -> list[str]:
    """Placeholders of a text (printf, Python, gettext, templates), and its tags, entities and addresses."""
    return [found.group() for found in _FORM.finditer(text)]


def differing(source: str, target: str) -> str:
    """What is wrong with the placeholders of a translation; empty if they are those of the source."""
    wanted, given = Counter(placeholders(source)), Counter(placeholders(target))
    if wanted == given:
        return ""
    need = f"placeholders {' '.join(wanted.elements())}" if wanted else "no placeholders"
    return f"expected {need}, got {' '.join(given.elements()) or 'none'}; correct the translation"


def unchanged(source: str, target: str) -> str:
    """What is wrong if an ICU message with words in its branches was copied."""
    there = [one for one in placeholders(source) if _BRANCHES.match(one) and one in target]
    return "the ICU message is not translated; translate its branches" if there else ""


def missing(source: str, target: str, others: Sequence[Span] = ()) -> list[Span]:
    """The places in a source of what its translation lacks."""
    wanted = Counter(placeholders(source)) - Counter(placeholders(target))
    for text, count in Counter(source[begin:end] for begin, end in others).items():
        wanted[text] += max(0, count - target.count(text))
    found = []
    for begin, end in sorted({*spans(source), *others}):
        if wanted[source[begin:end]] > 0:
            wanted[source[begin:end]] -= 1
            found.append((begin, end))
    return found


def restored(source: str, found: WrittenSentence, lost: Sequence[Span], kept: Sequence[Span] = ()) -> str:
    """A translation with parts of its source in place of the words that they became.

    A part that no word of the translation stands for is put before the word that follows it. Its placeholders
    and the places `kept` stay as they are.
    """
    links = found.links
    if links is None or not lost:
        return found.text
    weights, known = links.weights.copy(), set(placeholders(source))
    there = [*kept, *(place for place in spans(found.text) if found.text[slice(*place)] in known)]
    weights[links.rows(there)] = 0  # these stand for what the translation has
    links = links._replace(weights=weights)
    marks = tuple(
        Mark(begin, end, (begin, end))
        if became_words(links, begin, end)
        else _before_next(source, begin, end)
        for begin, end in lost
    )
    text, last = "", None
    for part in laid(Segment(source, marks), found._replace(links=links)):
        if not isinstance(part, str):
            before, last = last, part.what
            begin, end = last
            text = _spaced(text[::-1], source[:begin][-1:], source[begin], _closes)[::-1]
            between = source[before[1] : begin] if before else ""
            text += " " if between.isspace() and not text[-1:].isspace() else ""
            text += source[begin:end]
        elif last is None:
            text += part
        else:
            text += _spaced(part, source[last[1] :][:1], source[last[1] - 1], _opens)
            last = None
    return text


def _before_next(source: str, begin: int, end: int) -> Mark:
    """A point before the word that follows a part of a source, or the sign at its end."""
    following = _LETTER.search(source, end)
    place = following.start() if following else len(source) - len(source[end:].lstrip())
    return Mark(place, place, (begin, end))


def _opens(sign: str) -> bool:
    return unicodedata.category(sign) in ("Ps", "Pi") or sign in "¿¡"


def _closes(sign: str) -> bool:
    return unicodedata.category(sign) in ("Pe", "Pf", "Po") and not _opens(sign)


def _spaced(text: str, beside: str, sign: str, joins: Callable[[str], bool]) -> str:
    """The text on a side of what is put into it, with a space or without one as in the source."""
    if beside.isspace():
        return f" {text}" if text and (text[0].isalnum() or joins(text[0])) else text
    if text[:1].isalnum() and sign.isalnum() and not beside.isalnum():
        return f" {text}"
    return text.lstrip() if beside and joins(sign) else text


def became_words(links: Links, begin: int, end: int) -> bool:
    """Whether most of the attention of a word of the translation is on this part of the source."""
    shares = links.looks(begin, end)
    return bool(shares.size and shares.max() >= HALF)


def unbroken(found: WrittenSentence) -> WrittenSentence:
    """A translation in whose links each placeholder is one word, so that no markup begins or ends inside."""
    places, links = spans(found.text), found.links
    if links is None or not places:
        return found
    target, rows = list[Span](), list[list[np.ndarray]]()
    for word, row in zip(links.target, links.weights, strict=True):
        touched = [word, *(one for one in places if one[0] < word[1] and word[0] < one[1])]
        begin, end = min(one[0] for one in touched), max(one[1] for one in touched)
        if target and begin < target[-1][1]:
            target[-1] = target[-1][0], max(end, target[-1][1])
            rows[-1].append(row)
        else:
            target.append((begin, end))
            rows.append([row])
    weights = np.stack([np.mean(one, axis=0) for one in rows]) if rows else links.weights
    return found._replace(links=links._replace(weights=weights, target=target))


def untagged(text: str) -> Segment | None:
    """A text without its tags, which are marks; None if it has none."""
    run, at = InlineText(), 0
    for found in _TAGS.finditer(text):
        run.text("", text[at : found.start()])
        at = found.end()
        if found["empty"]:
            run.point(found[0])
        elif found["close"]:
            run.close(found[0], found["name"])
        else:
            run.open(found[0], found["name"])
    run.text("", text[at:])
    return Segment(*run.ended()) if at else None


def tagged(segment: Segment, found: WrittenSentence) -> str:
    """The translation of a segment from `untagged`, with the tags around the words that theirs became."""
    return with_tags(laid(segment, unbroken(found)))


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
_NUMBER = regex.compile(
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
        for found in _NUMBER.finditer(text)
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
