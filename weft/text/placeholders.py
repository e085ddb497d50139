"""Placeholders, tags, entities and addresses in texts: a translation must have the same ones.

They are read by the model as they stand. One that its translation lacks is put where the words that it became
are. Read next: moving.py; ../tasks/seq2seq/translator.py, which uses it.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import regex

from weft.text.moving import laid, with_tags
from weft.text.segments import InlineText, Links, Mark, Segment, Span, WrittenSentence

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
