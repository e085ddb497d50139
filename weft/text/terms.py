"""Terms in translations: whether one stands for its words of the source, and which words do instead.

Read next: segments.py, which has the attention; ../tasks/seq2seq/translator.py, which searches again
without the other words.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from weft.text.moving import Laid, laid
from weft.text.segments import Mark, Segment, Span, WrittenSentence
from weft.words import folded, spans, words

SEEN = 0.25
"""Share of a word's attention on a term of the source from which on it may stand for the term."""
STEM = 4  # letters of words that may be forms of one

_NO_WORD = re.compile(r"\d|^\W")  # a word of a translation whose place no term takes


class Term(NamedTuple):
    """A term in a source."""

    begin: int
    end: int
    target: str  # its translation


def key(text: str) -> str:
    """A text as its words in any letter case and Unicode form."""
    return " ".join(map(folded, words(text)))


def occurrences(target: str, text: str) -> list[Span]:
    """Where a term's translation is in a text, as whole words in any letter case."""
    found, wanted = spans(text), key(target).split(" ")
    read, size = [folded(text[begin:end]) for begin, end in found], len(wanted)
    places = [at for at in range(len(read) - size + 1) if read[at : at + size] == wanted]
    return [(found[at][0], found[at + size - 1][1]) for at in places]


def rivals(terms: Sequence[Term], found: WrittenSentence) -> tuple[str, ...]:
    """The words of a translation that stand for terms whose own translations it lacks.

    Of several words that look at a term these are the longest and its other forms; the rest are articles and
    the like.
    """
    links, instead = found.links, set[str]()
    if links is None:
        return ()
    for term in terms:
        if not occurrences(term.target, found.text):
            shares = links.looks(term.begin, term.end)
            seen = [(found.text[slice(*links.target[row])], shares[row]) for row in range(len(shares))]
            stands = [(len(word), share, word) for word, share in seen if share >= SEEN and word.isalnum()]
            stem = key(max(stands)[2])[:STEM] if stands else ""
            instead |= {word for *_, word in stands if key(word)[:STEM] == stem}
    return tuple(sorted(instead))


def wrong_terms(source: str, terms: Sequence[Term], found: WrittenSentence) -> str:
    """What is wrong with the terms of a translation; empty if each stands where its source's words are."""
    places = {term.target: occurrences(term.target, found.text) for term in terms}
    own = [place for each in places.values() for place in each]
    for term in terms:
        what = source[term.begin : term.end]
        if not places[term.target]:
            return f"expected the term {term.target!r} for {what!r}, got none; correct the translation"
        if found.links is None or not found.links.target:
            continue
        same = [one for one in terms if one.target == term.target]
        inside = found.links.rows(places[term.target])
        share = max(float(found.links.looks(one.begin, one.end)[inside].max(initial=0)) for one in same)
        rest = found.links.looks(term.begin, term.end)
        rest[found.links.rows(own)] = 0
        other = found.text[slice(*found.links.target[int(rest.argmax())])]
        alike = key(other)[:STEM] == key(term.target)[:STEM]
        if share < SEEN or rest.max() > (SEEN if alike else share):
            beside = f", where {other!r} stands" if rest.max() >= SEEN else ""
            return (
                f"the term {term.target!r} may not be in the place of {what!r}{beside}; check the translation"
            )
    return ""


def with_terms(source: str, terms: Sequence[Term], found: WrittenSentence) -> str:
    """A translation with the terms that it lacks in place of the words that stand for them.

    No term takes the place of a number or of punctuation, which touches the word before it.
    """
    lacking = [term for term in terms if not occurrences(term.target, found.text)]
    links = found.links
    if links is None or not lacking:
        return found.text
    weights = links.weights.copy()
    weights[links.rows([place for term in terms for place in occurrences(term.target, found.text)])] = 0
    fixed = [row for row, place in enumerate(links.target) if _NO_WORD.search(found.text[slice(*place)])]
    weights[fixed] = 0
    marks = tuple(
        Mark(term.begin, term.end, term.target)
        for term in lacking
        if links._replace(weights=weights).looks(term.begin, term.end).max(initial=0) >= SEEN
    )
    parts = laid(Segment(source, marks), found._replace(links=links._replace(weights=weights)))
    text = ""
    for part in parts:
        more = part.what if isinstance(part, Laid) else part
        glued = spans(text[-1:] + more[:1]) == [(0, 2)]  # they would be one word
        text += " " * glued + more
    return text


def begun(source: str, terms: Sequence[Term], text: str) -> str:
    """A translation that begins with a term, with a capital letter if its source begins with one."""
    first = any(term.target.islower() and text.startswith(term.target) for term in terms)
    return text[0].upper() + text[1:] if first and source.lstrip()[:1].isupper() else text
