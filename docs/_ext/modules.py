"""The directive `modules`: a section for each module of a package with names for users, set by autodoc.

    .. modules:: weft.nn.cells
       :only: cell lstm gru

A page names packages, and their modules are looked up. Packages inside a package need a line of their own.
What is for users says `documented`; a module without such a name is left out.

`public-names` lists what `from PACKAGE import …` finds, each with its first sentence and a link:

    .. public-names:: weft.nn
"""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.nodes import nested_parse_with_titles

import weft
from weft import lazy, rooms

DOCS = Path(__file__).resolve().parents[1]
SHOWN = re.compile(r"^(?:```|~~~)[^\n]*\n(?::\S+:[^\n]*\n)*(.*?)^(?:```|~~~)", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r"\{py:\w+\}`(?:[^`<]*<)?~?(weft[\w.]*)>?`")
CONTRACT = re.compile(r"^\.\. part-settings:: (\S+)$", re.MULTILINE)
UNREADABLE = ("weft.nn.kernels.triton",)
"""They import Triton, which only Linux with a GPU has."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("modules", Modules)
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Modules(Directive):
    """Sections with automodule."""

    required_arguments = 1
    optional_arguments = 20
    option_spec: ClassVar = {"only": directives.unchanged, "without": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """The sections, one a module."""
        only = self.options.get("only", "").split()
        without = self.options.get("without", "").split()
        lines: list[str] = []
        for package in self.arguments:
            names = [name for name in modules(package) if name.rpartition(".")[2] not in without]
            for name in [name for name in names if not only or name.rpartition(".")[2] in only]:
                members = [one.rpartition(".")[2] for one in documented() if one.rpartition(".")[0] == name]
                if members:
                    lines += [f"``{name}``", "-" * (len(name) + 4), "", f".. automodule:: {name}"]
                    lines += [f"   :members: {', '.join(sorted(members))}", ""]
        node = nodes.section()
        node.document = self.state.document
        nested_parse_with_titles(self.state, StringList(lines, source="modules"), node)
        return node.children


class PublicNames(Directive):
    """A list of the names in a package's stub."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The list."""
        (package,) = self.arguments
        lines = []
        for name, (home, original) in sorted(lazy.names(package).items()):
            inside = home == package  # a package
            value = getattr(importlib.import_module(package), name)
            documented = inspect.getdoc(value) if inside or callable(value) else None
            first = " ".join((documented or "").split("\n\n")[0].split())
            role = "mod" if inside else "obj"
            lines.append(f"- :py:{role}:`{name} <{home}.{original}>`{': ' if first else ''}{escaped(first)}")
        node = nodes.section()
        node.document = self.state.document
        nested_parse_with_titles(self.state, StringList(lines, source="public-names"), node)
        return node.children


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


def escaped(sentence: str) -> str:
    """A first sentence that reStructuredText reads as plain text."""
    return (
        sentence.replace("\\", "\\\\")
        .replace("*", "\\*")
        .replace("|", "\\|")
        .replace("_", "\\_")
        .replace("`", "")
    )


def modules(package: str) -> list[str]:
    """The modules of a package by name, or the module itself."""
    whole = importlib.import_module(package)
    if not hasattr(whole, "__path__"):
        return [package]
    found = [f"{package}.{one.name}" for one in pkgutil.iter_modules(whole.__path__) if not one.ispkg]
    return [name for name in found if name not in UNREADABLE and not name.startswith(UNREADABLE[0])]
