"""Placeholders of messages, such as %s, %(count)d and {name}: a translation must have the same ones.

They are read by the model as they stand. One that its translation lacks is put where the words that it became
are. Read next: moving.py; po.py and xliff.py, which use it.
"""

import re
from collections import Counter

from weft.documents.moving import laid
from weft.documents.segments import Mark, Segment, WrittenSentence

_FORM = re.compile(
    r"%(?:\d+\$|\([\w.-]+\))?[#0+-]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGcrsaA@]"
    r"|[$%]\{[\w.]+\}|\{\{\s*[\w.]+\s*\}\}|\{[\w.\[\]]*(?:![rsa])?(?::[^{}\s]*)?\}"
)


def placeholders(text: str) -> list[str]:
    """The placeholders of a text, of printf, Python, gettext and templates.

    Example:
        >>> placeholders("%1$s of %(all)d: {name}, {0:.2f}, ${x}, 50% done")
        ['%1$s', '%(all)d', '{name}', '{0:.2f}', '${x}']
    """
    return _FORM.findall(text)


def marked(segment: Segment) -> Segment:
    """The segment with its placeholders as marks, unless it has markup."""
    if segment.marks:
        return segment
    marks = (Mark(*found.span(), found.group()) for found in _FORM.finditer(segment.text))
    return segment._replace(marks=tuple(marks))


def restored(segment: Segment, found: WrittenSentence) -> WrittenSentence:
    """A translation with the placeholders that it lacks in place of the words that they became.

    It stays as it is if that would not give the placeholders of the source.

    Args:
        segment: the source, from `marked`.
        found: its translation, with links if there are marks.
    """
    missing = Counter(placeholders(segment.text)) - Counter(placeholders(found.text))
    marks = []
    for mark in segment.marks:
        if isinstance(mark.what, str) and missing[mark.what] > 0:
            missing[mark.what] -= 1
            marks.append(mark)
    parts = laid(segment._replace(marks=tuple(marks)), found) if marks else []
    text = "".join(part if isinstance(part, str) else part.what for part in parts)
    return found._replace(text=text) if marks and not differing(segment.text, text) else found


def differing(source: str, target: str) -> str:
    """What is wrong with the placeholders of a translation; empty if they are those of the source."""
    wanted, given = Counter(placeholders(source)), Counter(placeholders(target))
    if wanted == given:
        return ""
    need = f"placeholders {' '.join(wanted.elements())}" if wanted else "no placeholders"
    return f"expected {need}, got {' '.join(given.elements()) or 'none'}; correct the translation"
