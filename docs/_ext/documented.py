"""What the reference describes: `documented` names, found in the `modules` of a package. Needs Weft alone."""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import weft
from weft import lazy, rooms

DOCS = Path(__file__).resolve().parents[1]
SHOWN = re.compile(r"^(?:```|~~~)[^\n]*\n(?::\S+:[^\n]*\n)*(.*?)^(?:```|~~~)", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r"\{py:\w+\}`(?:[^`<]*<)?~?(weft[\w.]*)>?`")
CONTRACT = re.compile(r"^\.\. part-settings:: (\S+)$", re.MULTILINE)


@cache
def documented() -> frozenset[str]:
    """Dotted paths of what the reference describes.

    These are the public names, the parts that a recipe can name, and what the pages link or use in examples.
    """
    root = Path(weft.__file__).parent
    packages = [
        ".".join(("weft", *path.parent.relative_to(root).parts)) for path in root.rglob("__init__.pyi")
    ]
    public = [pair for package in packages for pair in lazy.names(package).values()]
    found = {place for pair in public if (place := _home(*pair))}
    for page in sorted((DOCS / "reference" / "settings").glob("*.rst")):
        for place in CONTRACT.findall(page.read_text("utf-8")):
            module, _, name = place.rpartition(".")
            contract = getattr(importlib.import_module(module), name)
            parts = rooms.parts(rooms.room_of(contract), contract).values()
            found |= {place, *(f"{part.__module__}.{part.__name__}" for part in parts)}
    pages = [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")]
    texts = [page.read_text("utf-8") for page in pages]
    return frozenset(found.union(*map(_used, texts)))


def _used(text: str) -> Iterator[str]:
    """The dotted paths of names of Weft that a page links or imports in its examples."""
    yield from ROLE.findall(text)
    for block in SHOWN.findall(text):
        lines = [
            line.removeprefix(">>> ")
            for line in block.split("\n")
            if not line.lstrip().startswith(("!", "%"))
        ]
        try:
            tree = ast.parse(textwrap.dedent("\n".join(lines)))
        except SyntaxError:  # not Python
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("weft"):
                yield from (one for name in node.names if (one := _home(str(node.module), name.name)))


def _home(module: str, name: str) -> str:
    """Where a name is defined, or "" for a module or what the page itself makes up."""
    try:
        value = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return ""
    if inspect.ismodule(value) or not (inspect.isclass(value) or inspect.isfunction(value)):
        return ""
    return f"{value.__module__}.{value.__name__}"


def modules(package: str) -> list[str]:
    """The modules of a package by name, or the module itself."""
    whole = importlib.import_module(package)
    if not hasattr(whole, "__path__"):
        return [package]
    return [f"{package}.{one.name}" for one in pkgutil.iter_modules(whole.__path__) if not one.ispkg]
