"""Guess the encoding of a file that is not UTF-8, and suggest a command that converts it.

charset-normalizer names an encoding also for a word that many of them explain: Hebrew is then Cyrillic, and
"naïve" Chinese. Here the letters of their languages decide, and where two encodings explain a text, none is
named. Read next: lines.py, which shows the suggestion in its errors.
"""

import re
import shlex
import unicodedata
from functools import lru_cache
from pathlib import Path

from charset_normalizer import from_bytes
from charset_normalizer.constant import FREQUENCIES

SAMPLE = 2**20
"""Bytes read of a file."""

JUDGED = 2**14
"""Bytes judged."""

FEW = 20
"""Bytes beyond ASCII below which two encodings may explain a text, also one with several bytes a letter."""

_CENTRAL = "čćđšžČĆĐŠŽáďéěíňóřťúůýÁĎÉĚÍŇŘŤÚŮÝąęłńśźżĄĘŁŃÓŚŹŻöőüűÖŐÜŰß"
_LATIN = {
    "WINDOWS-1252": "äöüßÄÖÜéèêàâçùûîïôœÉÀÇáíóúñÁÍÓÚÑ¿¡ªºìòãõåÅæøÆØ",
    "WINDOWS-1250": _CENTRAL,
    "ISO-8859-2": _CENTRAL,
    "WINDOWS-1254": "ğĞıİşŞçÇöÖüÜâîû",
}
"""Letters beyond a to z of the languages written in each encoding; ties go to the first encoding."""

_SCRIPTS = {
    "WINDOWS-1251": ("Russian", "Ukrainian", "Serbian", "Bulgarian"),
    "KOI8-R": ("Russian",),
    "CP866": ("Russian",),
    "WINDOWS-1253": ("Greek",),
    "WINDOWS-1255": ("Hebrew",),
    "WINDOWS-1256": ("Arabic", "Farsi"),
    "CP874": ("Thai",),
}
"""Languages of other scripts, whose letters charset-normalizer lists by frequency."""

_MIXED = "mixed"
_BEYOND = "\u0370-\u06ff\u0e00-\u0e7f"
_ODD = re.compile(rf"[A-Za-z][{_BEYOND}]|[{_BEYOND}][A-Za-z]|\w[„“”‚«»–…€§°©®]\w")
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
    beyond = [line for line in sample.split(b"\n") if not line.isascii()]
    judged = b"\n".join(beyond)[:JUDGED]
    scores = {name: _score(judged, name) for name in (*_LATIN, *_SCRIPTS)}
    best = max(scores, key=lambda name: scores[name])
    few = sum(byte > 127 for byte in judged) < FEW
    if scores[best] > 0.5 and best != "CP874":
        return None if few and _rivals(judged, best, scores) else best
    if few:
        return None
    other = from_bytes(judged).best()  # of many bytes a letter, such as Shift JIS; Thai has the same bytes
    if other is None or other.multi_byte_usage <= 0.3:
        return best if scores[best] > 0.5 else None
    return "EUC-JP" if other.encoding.startswith("euc_ji") else other.encoding.upper()


def _rivals(sample: bytes, best: str, scores: dict[str, float]) -> list[str]:
    """Encodings that explain a sample as well as the best does, but as another text."""
    text = sample.decode(best, "replace")
    close = [name for name, score in scores.items() if score > scores[best] - 0.15]
    return [name for name in close if sample.decode(name, "replace") != text]


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
        told = "" if 0 in line else "the encoding is unclear; "
        return f"{told}convert the file (iconv -f ENCODING -t UTF-8) or remove the line"
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
    for line in sample.split(b"\n")[:-1] if 0 not in sample else ():
        try:
            if not line.isascii() and line.decode("utf-8"):
                return _MIXED
        except UnicodeDecodeError:
            continue
    return guess(sample)


def _score(sample: bytes, name: str) -> float:
    """How well an encoding explains a sample: its letters, and how the text reads."""
    text = sample.decode(name, errors="replace")
    beyond = [mark for mark in text if ord(mark) > 127 and mark not in _MARKS]
    if name in _LATIN:
        share = sum(mark in _LATIN[name] for mark in beyond) / len(beyond) if beyond else 0.6
        odd = not re.search("[A-Za-z]", text) or re.search(r"[a-zß-ÿ][A-ZÀ-Þ]", text)
    else:
        share, odd = max(_common(beyond, language) for language in _SCRIPTS[name]), None
    read = from_bytes(sample, cp_isolation=[name], threshold=1.0).best()
    known = read.coherence - 2 * min(read.chaos, 0.2) if read is not None else -0.4
    return share - bool(odd or _ODD.search(text)) + known


def _common(letters: list[str], language: str) -> float:
    """How frequent letters are in a language, from 0 to 1."""
    ranks = {letter: place for place, letter in enumerate(FREQUENCIES[language])}
    script = unicodedata.name(FREQUENCIES[language][0]).split()[0]
    worth = {
        mark: 1 - ranks[mark.lower()] / 50
        if mark.lower() in ranks
        else 0.4 * unicodedata.name(mark, "").startswith(script)
        for mark in set(letters)
    }
    return sum(worth[mark] for mark in letters) / len(letters) if letters else 0.0
