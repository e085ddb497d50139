"""What a translation keeps of its source: text without letters, placeholders, and unknown characters.

A model that has seen few of them writes other numbers for "2", loses "%s", and writes any word for an emoji.
Read next: translator.py; ../../documents/placeholders.py.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.documents.links import Links, Span
from weft.documents.placeholders import differing, missing, restored, spans
from weft.documents.segments import WrittenSentence
from weft.text.characters import Alphabet
from weft.words import spans as words


class KeptParts(NamedTuple):
    """What the translation of a line keeps."""

    whole: bool  # the line as it is: it has no letters beside these parts
    placeholders: bool
    unknown: list[Span]  # words with characters that the vocabulary lacks
    lacking: list[str]  # these characters, to be named; figures of a copied line are not


def kept_parts(line: str, alphabet: Alphabet) -> KeptParts:
    """The parts of a line that its translation keeps.

    Args:
        line: the source.
        alphabet: of the source vocabulary.

    Example:
        >>> kept_parts("Open %s 🙂", Alphabet("Open "))
        KeptParts(whole=False, placeholders=True, unknown=[(8, 9)], lacking=['🙂'])
        >>> kept_parts("{count} / 2026-11-26", Alphabet("")).whole
        True
    """
    fixed = spans(line)
    lacking = [one for one in alphabet.lacking(line) if not _touches(one, fixed)]
    unknown: list[Span] = []
    for word in words(line) if lacking else ():
        if not _touches(word, lacking) or _touches(word, fixed):
            continue
        between = line[unknown[-1][1] : word[0]] if unknown else " "
        if not between or (len(between) == 1 and not between.isspace() and not between.isalnum()):  # 3.14
            unknown[-1] = unknown[-1][0], word[1]
        else:
            unknown.append(word)
    rest, at = "", 0
    for begin, end in sorted([*fixed, *unknown]):
        rest, at = rest + line[at:begin], end
    rest += line[at:]
    whole = not any(map(str.isalpha, rest))
    characters = [line[begin:end] for begin, end in lacking]
    named = [one for one in characters if not (whole and one.isascii())]
    return KeptParts(whole, bool(fixed), unknown, named)


def completed(
    line: str, parts: KeptParts, target: str, links: Callable[..., Links | None]
) -> tuple[str, str]:
    """A translation with what it lacks of its source, and what is wrong with its placeholders then.

    Args:
        line, parts: the source, and what of it is kept.
        target: the translation.
        links: gives the links of their words; with `guessed=False` None if no attention shows them.
    """
    lost = missing(line, target, parts.unknown)
    if lost:
        seen = links(guessed=False)
        if seen is None:  # a guess is no place for a word of which the model knows nothing
            lost, seen = missing(line, target), links()
        whole = restored(line, WrittenSentence(target, seen), lost)
        target = target if missing(line, whole) else whole
    return target, differing(line, target)


def _touches(one: Span, others: Sequence[Span]) -> bool:
    return any(begin < one[1] and one[0] < end for begin, end in others)
