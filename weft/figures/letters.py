"""Replace characters that a figure cannot show. Read next: fonts.py."""

import unicodedata


def printable(text: str) -> str:
    """The text with control characters as code points, because no font shows them and XML forbids them.

    Example:
        >>> printable(f"a{chr(7)}"), printable(" ")
        ('aU+0007', '␣')
    """
    shown = "".join(
        code_point(letter) if unicodedata.category(letter) in ("Cc", "Cs", "Cn") else letter
        for letter in text
    )
    return shown if shown.strip() else "␣"


def code_point(letter: str) -> str:
    """A code point such as U+4E2D."""
    return f"U+{ord(letter):04X}"
