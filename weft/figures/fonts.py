"""Fonts for figures with text in any script.

A PNG can only show characters for which a font is installed. Fonts are found character by character; a
character without a font is shown as its code point (U+4E2D), with one warning that says what to install. An
SVG keeps its text as text, so the browser chooses fonts and lays out the script, including right-to-left.
Read next: axes.py, which characters can be shown; picture.py, which saves.
"""

import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from weft.figures.axes import code_point

BASE = "DejaVu Sans"
"""Included in matplotlib, so always available: Latin, Cyrillic, Greek, Arabic, Hebrew and more."""

BROWSER = (
    "'DejaVu Sans', 'Noto Sans', 'Segoe UI', 'Helvetica Neue', Arial, 'Arial Unicode MS', "
    "'Noto Sans Arabic', 'Noto Sans Hebrew', 'Noto Sans Devanagari', 'Noto Sans Thai', 'Nirmala UI', "
    "'Noto Sans CJK SC', 'Microsoft YaHei', 'PingFang SC', 'Noto Sans CJK JP', 'Hiragino Sans', 'Yu Gothic', "
    "'Noto Sans CJK KR', 'Malgun Gothic', 'Apple SD Gothic Neo', "
    "'Noto Color Emoji', 'Apple Color Emoji', 'Segoe UI Emoji', sans-serif"
)
"""Font families named in an SVG, in order of preference; most systems have some of them."""

_CJK = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH"}
# Fonts with characters at wrong code points (TeX's fonts) or boxes instead of characters.
_UNFIT = ("cmb10", "cmex10", "cmmi10", "cmr10", "cmss10", "cmsy10", "cmtt10", "Last Resort", "STIXSize")


def families(text: Iterable[str]) -> tuple[list[str], set[str]]:
    """Installed font families that cover the text, and the characters that no font has."""
    missing = {letter for letter in text if not letter.isspace() and not _invisible(letter)}
    found: list[str] = []
    for entry in _candidates(fresh=False):
        found, missing = _use(entry, found, missing)
        if not missing:
            return found, missing
    for entry in _candidates(fresh=True):  # fonts installed after matplotlib cached its list
        found, missing = _use(entry, found, missing)
    return found, missing


@contextmanager
def readable(figure: Figure, *, keep_text: bool, warn: bool = True) -> Iterator[list[str]]:
    """Use fonts that cover all texts of a figure within the block; yields their families."""
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    before = [text.get_text() for text in texts]
    found, missing = families("".join(before))
    try:
        for text in texts:
            text.set_fontfamily(found)
            if missing and not keep_text:
                text.set_text(_spelt(text.get_text(), missing))
        if missing and not keep_text and warn:
            warnings.warn(_advice(missing), stacklevel=4)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
            yield found
    finally:
        for text, words in zip(texts, before, strict=True):
            text.set_text(words)


def _use(entry: FontEntry, found: list[str], missing: set[str]) -> tuple[list[str], set[str]]:
    drawable = {letter for letter in missing if ord(letter) in _letters(entry.fname)}
    if (drawable and entry.name not in found) or entry.name == BASE:
        return [*found, entry.name], missing - drawable
    return found, missing


@cache
def _candidates(*, fresh: bool) -> list[FontEntry]:
    """One upright, regular face per family; the base first, sans before serif."""
    known = font_manager.fontManager.ttflist
    entries = known
    if fresh:
        paths = set(font_manager.findSystemFonts()) - {entry.fname for entry in known}
        for path in sorted(paths):
            try:
                font_manager.fontManager.addfont(path)
            except (
                OSError,
                RuntimeError,
                ValueError,
            ):  # skip fonts that matplotlib cannot read
                continue
        entries = [entry for entry in font_manager.fontManager.ttflist if entry.fname in paths]
    plain = {
        entry.name: entry
        for entry in sorted(entries, key=lambda entry: entry.fname, reverse=True)
        if entry.style == "normal" and str(entry.weight) in ("400", "normal", "regular", "book", "500")
        if not entry.name.startswith(_UNFIT)
    }
    order = sorted(plain.values(), key=lambda entry: ("Sans" not in entry.name, entry.name))
    return sorted(order, key=lambda entry: entry.name != BASE)


@cache
def _letters(path: str) -> frozenset[int]:
    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):  # removed or damaged since it was listed
        return frozenset()


def _invisible(letter: str) -> bool:
    """Whether a character has no shape: joiners, direction marks, variation selectors."""
    return unicodedata.category(letter) == "Cf" or "\ufe00" <= letter <= "\ufe0f"


def _spelt(text: str, missing: set[str]) -> str:
    """Replace missing characters by code points, separated by spaces."""
    parts = [f" {code_point(letter)} " if letter in missing else letter for letter in text]
    return "".join(parts).replace("  ", " ").strip(" ")


def _advice(missing: set[str]) -> str:
    names = {letter: unicodedata.name(letter, "UNNAMED").split()[0] for letter in sorted(missing)}
    scripts = sorted(set(names.values()))
    some = ", ".join(sorted(missing)[:5]) + (", …" if len(missing) > 5 else "")
    package = "fonts-noto-cjk" if _CJK & set(scripts) else "fonts-noto-core"
    return (
        f"no installed font has {len(missing)} of the picture's letters ({some}; "
        f"script: {', '.join(scripts)}), so they are written as code points; install a font that has them "
        f"(Debian and Ubuntu: apt install {package}; elsewhere Noto fonts from fonts.google.com/noto), "
        "or save as .svg and open it in a browser"
    )
