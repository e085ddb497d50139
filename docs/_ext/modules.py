"""The directive `modules`: a section for each module of a package with names for users, set by autodoc.

    .. modules:: weft.nn.cells
       :only: cell lstm gru

A page names packages, and their modules are looked up. Packages inside a package need a line of their own.
What is for users says `documented`; a module without such a name is left out.

`public-names` lists what `from PACKAGE import …` finds, each with its first sentence and a link:

    .. public-names:: weft.nn
"""

import importlib
import inspect
from typing import ClassVar

from documented import documented, modules
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.nodes import nested_parse_with_titles

from weft import lazy


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("modules", Modules)
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-skip-member", of_scikit_learn)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def of_scikit_learn(
    app: Sphinx, what: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Leave out what scikit-learn adds to an estimator: its docstrings are no valid text here."""
    return True if name.startswith("set_") and name.endswith("_request") else None


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
        self.state.document.settings.env.note_reread()  # names may go without a change of the page
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


def escaped(sentence: str) -> str:
    """A first sentence that reStructuredText reads as plain text."""
    return (
        sentence.replace("\\", "\\\\")
        .replace("*", "\\*")
        .replace("|", "\\|")
        .replace("_", "\\_")
        .replace("`", "")
    )
