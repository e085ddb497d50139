"""What the checks of exercises say in the other languages of the course.

Their sentences have holes for names and numbers: docs/_locale/LANGUAGE/LC_MESSAGES/checks.po,
which an installed package has as weft/testing/languages/LANGUAGE.po. Read next: exercises.py.
"""

import re
from ast import literal_eval
from functools import cache
from pathlib import Path

from weft.errors import ConfigError

LANGUAGES = ("en", "es", "hr", "pl", "ru")
_HERE = Path(__file__).resolve().parent
_MESSAGE = re.compile(r'^msgid ((?:".*"\n)+)msgstr ((?:".*"\n)+)', re.MULTILINE)
_LARGE = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
"""A number with English commas, which are decimal points elsewhere."""
_HOLE = re.compile(r"\\\{\d\\\}")


def translated(text: str, language: str) -> str:
    """A sentence with its names and numbers in a language; as it is where it has no translation."""
    language = two_letters(language)
    for pattern, said in _sentences(language):
        if found := pattern.fullmatch(text):
            return said.format(*(translated(one, language) for one in found.groups()))
    if language != "en" and _LARGE.fullmatch(text):
        return text.replace(",", " ")
    return text


def two_letters(language: str) -> str:
    """A language of the course, also written as a locale: HR, hr_HR.UTF-8."""
    short = re.split(r"[-_.@]", language)[0].lower()
    return short if short in LANGUAGES else language


@cache
def _sentences(language: str) -> list[tuple[re.Pattern[str], str]]:
    """What English sentences match, the longest first, and what is said for them."""
    if language not in LANGUAGES:
        raise ConfigError(f"language: expected {', '.join(LANGUAGES)}, got {language!r}")
    if language == "en":
        return []
    inside = _HERE / "languages" / f"{language}.po"
    checkout = _HERE.parents[1] / "docs" / "_locale" / language / "LC_MESSAGES" / "checks.po"
    path = inside if inside.exists() else checkout
    if not path.exists():
        raise ConfigError(f"language: this installation has no hints in {language!r}; choose 'en'")
    pairs = [
        tuple(map(literal_eval, map("({})".format, found)))
        for found in _MESSAGE.findall(path.read_text("utf-8"))
    ]
    pairs.sort(key=lambda pair: -len(pair[0]))
    return [
        (re.compile(_HOLE.sub("(.+)", re.escape(said)), re.DOTALL), other) for said, other in pairs if said
    ]
