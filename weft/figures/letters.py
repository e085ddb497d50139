"""Replace characters that a figure cannot show. Read next: fonts.py."""

import unicodedata
from collections.abc import Sequence


def printable(text: str) -> str:
    """The text with control characters as code points, because no font shows them and XML forbids them."""
    shown = "".join(
        code_point(letter) if unicodedata.category(letter) in ("Cc", "Cs", "Cn") else letter
        for letter in text
    )
    return shown if shown.strip() else "␣"


def shortened(names: Sequence[str], longest: int) -> list[str]:
    """Names of at most `longest` characters; those that would look the same keep more of their end."""

    def cut(name: str, end: int) -> str:
        whole = end == longest - 1 or len(name) <= longest
        return name if whole else f"{name[: longest - 1 - end]}…{name[len(name) - end :]}"

    tried = (*range(0, longest - 1, 3), longest - 1)
    alike: dict[str, set[str]] = {}
    for name in names:
        alike.setdefault(cut(name, 0), set()).add(name)
    ends = {
        short: next(end for end in tried if len({cut(one, end) for one in some}) == len(some))
        for short, some in alike.items()
    }
    return [cut(name, ends[cut(name, 0)]) for name in names]


def code_point(letter: str) -> str:
    """A code point such as U+4E2D."""
    return f"U+{ord(letter):04X}"
