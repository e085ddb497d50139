"""No regular expression takes time that grows with the square of a text, in the way in which it is used."""

import importlib
import itertools
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import regex

import weft

ROOMS = ("config", "data", "documents", "importing", "ngram", "serve", "store", "text")
SOURCE = "\n".join(file.read_text("utf-8") for file in Path(weft.__path__[0]).rglob("*.py"))
PATTERN = (re.Pattern, type(regex.compile("")))
CALLED = re.compile(r"\b([A-Z_0-9]+)\.(finditer|findall|search|split|sub|match)\b")
ANYWHERE = set(CALLED.findall(SOURCE))
SMALL = 300
BOUNDED = {"_OFFSET", "_MONTHS", "_MIDNIGHT", "_NUMBER"}
"""Of times and numbers with units, which have at most 100 characters."""


def patterns() -> Iterator[tuple[str, Any]]:
    """Each once, by the first module that has it."""
    seen = set()
    for room in ROOMS:
        above = importlib.import_module(f"weft.{room}")
        for module in pkgutil.walk_packages(above.__path__, f"{above.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, PATTERN) and name not in BOUNDED and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{module.name}.{name}", value


def texts(pattern: str) -> Iterator[tuple[str, str]]:
    """What may come first, and what may be repeated after it."""
    signs = dict.fromkeys([*(sign for sign in pattern if sign.isascii() and not sign.isalnum()), *"a10 \n"])
    words = re.findall(r"[A-Za-z]{3,}", pattern)
    repeated = [*signs, *words[:3], "aa ", "1 ", "a.", 'a="']
    yield from itertools.product(["", *signs, *(f"{sign}a" for sign in signs), *words], repeated)


def seconds(run: Callable[[Any], Any], text: Any, times: int = 3) -> float:
    def once() -> float:
        begun = time.process_time()
        for _ in run(text) or ():
            pass
        return time.process_time() - begun

    return min(once() for _ in range(times))


def used(name: str, one: Any) -> Callable[[Any], Any]:
    """The method that the package calls, or that for whole texts if it calls none by name."""
    module, _, bare = name.rpartition(".")
    called = ANYWHERE
    if bare.startswith("_"):
        called = set(CALLED.findall(Path(str(importlib.import_module(module).__file__)).read_text("utf-8")))
    if any(found == bare and method != "match" for found, method in called):
        return one.finditer
    return lambda text: [one.match(text) if (bare, "match") in called else one.fullmatch(text)]


@pytest.mark.parametrize(("name", "one"), [pytest.param(*pair, id=pair[0]) for pair in patterns()])
def test_four_times_the_text_takes_about_four_times_as_long(name: str, one: Any) -> None:
    as_given = (lambda text: text.encode("latin-1")) if isinstance(one.pattern, bytes) else str
    pattern = one.pattern.decode("latin-1") if isinstance(one.pattern, bytes) else one.pattern
    run = used(name, one)
    for begin, again in texts(pattern):
        small = as_given(begin + (again * SMALL)[:SMALL] + "\0")
        if seconds(run, small, 1) > 0.0003 and (short := seconds(run, small)) > 0.0003:
            large = as_given(begin + (again * 4 * SMALL)[: 4 * SMALL] + "\0")
            assert seconds(run, large) < 9 * short, (begin, again)
