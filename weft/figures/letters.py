"""Which letters a picture may show at all, and what stands for the others. Read next: fonts.py."""

import unicodedata


def printable(text: str) -> str:
    """The text without what no font shows and no XML may hold: control characters as code points.

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
    """Such as U+4E2D."""
    return f"U+{ord(letter):04X}"
