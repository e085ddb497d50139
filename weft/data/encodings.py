"""Guess the encoding of a file that is not UTF-8, and suggest a command that converts it.

Read next: lines.py, which shows the suggestion in its errors.
"""

import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

SAMPLE = 2**20
"""Bytes examined."""

_LETTERS = {
    "WINDOWS-1252": (
        "äöüßÄÖÜ",
        "éèêàâçùûîïôœÉÀÇ",
        "áéíóúñüÁÉÍÓÚÑ¿¡ªº",
        "àèéìòù",
        "ãõáâêçéíóôú",
        "åäöÅÄÖé",
        "æøåÆØÅé",
    ),
    "WINDOWS-1250": (
        "čćđšžČĆĐŠŽ",
        "áčďéěíňóřšťúůýžÁČĎÉĚÍŇŘŠŤÚŮÝŽ",
        "ąćęłńóśźżĄĆĘŁŃÓŚŹŻ",
        "áéíóöőúüűÁÉÍÓÖŐÚÜŰ",
    ),
    "WINDOWS-1251": ("абвгдежзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЭЮЯёіїєґ",),
    "ISO-8859-2": ("čćđšžČĆĐŠŽ", "áčďéěíňóřšťúůýžÁČĎÉĚÍŇŘŠŤÚŮÝŽ", "ąćęłńóśźżĄĆĘŁŃÓŚŹŻ"),
}
"""Letters beyond a to z of the languages written in each encoding; ties go to the first encoding."""

_MIXED = "mixed"
_MARKS = "„“”‚‘’«»–—…€§°©®·"


def guess(sample: bytes) -> str | None:
    """The likely encoding of bytes that are not UTF-8, by iconv's name; None if none fits.

    Example:
        >>> guess("žaba i čvorak".encode("cp1250")), guess("à côté, déjà".encode("latin-1"))
        ('WINDOWS-1250', 'WINDOWS-1252')
        >>> guess("text".encode("utf-16"))
        'UTF-16'
    """
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    zeros = [sample[place::2].count(0) / max(1, len(sample[place::2])) for place in (0, 1)]
    if max(zeros) > 0.3 and min(zeros) < 0.1:
        return "UTF-16LE" if zeros[1] > zeros[0] else "UTF-16BE"
    if 0 in sample:
        return None
    scores = {name: _score(sample, name, languages) for name, languages in _LETTERS.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > 0.5 else None


def advice(file: str, line: bytes) -> str:
    """A command that converts a file to UTF-8, or general advice if the encoding is unclear.

    Args:
        file: its path; compressed files and streams get general advice.
        line: a line that is not UTF-8.
    """
    path = Path(file)
    found = None if 0 in line else guess(line)
    try:
        about = path.stat()
        found, plain = _guessed(file, about.st_size, about.st_mtime_ns) or found, path.is_file()
    except (OSError, ValueError):
        plain = False
    if found == _MIXED:
        return "other lines are UTF-8, so correct or remove the line"
    if found is None:
        return "convert the file (iconv -f ENCODING -t UTF-8) or remove the line"
    command = f"iconv -f {found} -t UTF-8"
    if plain and path.suffix not in (".gz", ".xz", ".zst"):
        other = path.with_name(f"{path.stem}.utf8{path.suffix}")
        command = f"{command} {shlex.quote(file)} > {shlex.quote(str(other))}"
    return f"convert the file, probably {found}: {command}"


@lru_cache(maxsize=16)
def _guessed(file: str, size: int, changed: int) -> str | None:
    """The encoding of a file from its first bytes; `size` and `changed` make the cache key."""
    with open(file, "rb") as opened:
        sample = opened.read(SAMPLE)
    found = guess(sample)
    if found is not None and not found.startswith("UTF-16"):
        for line in sample.split(b"\n")[:-1]:
            try:
                if not line.isascii() and line.decode("utf-8"):
                    return _MIXED
            except UnicodeDecodeError:
                continue
    return found


def _score(sample: bytes, name: str, languages: Sequence[str]) -> float:
    """The largest share of the non-ASCII letters that a single language of the encoding explains."""
    text = sample.decode(name, errors="replace")
    beyond = [mark for mark in text if ord(mark) > 127 and mark not in _MARKS]
    if not beyond:
        return 0.6 if any(mark in _MARKS for mark in text) else 0.0
    return max(sum(mark in letters for mark in beyond) / len(beyond) for letters in languages)
