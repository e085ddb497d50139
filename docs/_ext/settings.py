"""Directives for the settings of recipes, from the signatures and docstrings of the classes that read them.

    .. task-settings:: translate                    the sections of a task's recipe
    .. class-settings:: training weft.train.settings.TrainingSettings    one section, its name and its class
    .. part-settings:: weft.nn.cells.cell.Cell      every part that keeps this contract, with its settings

Each setting is an object, to which inline_code.py links. What a recipe may set is asked of
weft/config/building.py, which reads recipes.
"""

import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from docstrings import blocks, escaped, rewritten
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.nodes import nested_parse_with_titles

import weft.tasks
from weft import rooms
from weft.config import described, kinds
from weft.search.offered import offers
from weft.tasks.task import Task


class Setting(NamedTuple):
    """One key of a recipe."""

    name: str
    kind: str  # in words
    default: str  # empty where the key is required
    meaning: str


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_object_type("setting", "setting", objname="recipe setting", parse_node=named)
    app.add_directive("task-settings", TaskSettings)
    app.add_directive("class-settings", ClassSettings)
    app.add_directive("part-settings", PartSettings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def named(env: Any, text: str, node: Any) -> str:
    """Shows a key without its owner: `translate: data.source` is shown as data.source."""
    shown = text.rpartition(": ")[2]
    node += addnodes.desc_name(shown, shown)
    return text.replace(": ", ".")


class Written(Directive):
    """Parses the lines that `lines` gives."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The nodes of the lines."""
        sphinx = self.state.document.settings.env
        for module in [one for name, one in sys.modules.items() if name.startswith("weft.")]:
            if getattr(module, "__file__", None):
                sphinx.note_dependency(str(module.__file__))  # a setting may stand in any of them
        node = nodes.section()
        node.document = self.state.document
        nested_parse_with_titles(self.state, StringList(self.lines(), source="settings"), node)
        return node.children

    def lines(self) -> list[str]:
        """In reStructuredText."""
        raise NotImplementedError


class TaskSettings(Written):
    """The sections of a task, without `training`, which all tasks share."""

    def lines(self) -> list[str]:
        """A section each."""
        task = rooms.find(weft.tasks, Task, self.arguments[0])
        out = []
        for section, kind in task.sections.items():
            out += [section, "-" * len(section), "", *about(kind), ""]
            out += listed(f"{self.arguments[0]}: {section}.", kind)
        return out


class ClassSettings(Written):
    """One class."""

    def lines(self) -> list[str]:
        """Its settings."""
        section, place = self.arguments[0].split()
        return listed(f"{section}.", imported(place))


class PartSettings(Written):
    """Every part of a room."""

    def lines(self) -> list[str]:
        """A section each."""
        contract = imported(self.arguments[0])
        room = rooms.room_of(contract)
        out = []
        for name, part in sorted(rooms.parts(room, contract).items()):
            noun = contract.__name__.lower()
            out += [f".. _{noun}-{name}:", "", f"``{name}``", "-" * (len(name) + 4), "", *about(part), ""]
            out += listed(f"{noun}-{name}: ", part) or ["No settings.", ""]
            out += [f"In Python: :py:class:`{part.__module__}.{part.__name__}`", ""]
        return out


def imported(place: str) -> Any:
    """A class by its dotted path."""
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(module), name)


def about(kind: type) -> list[str]:
    """What a class is: its first paragraph."""
    first = next(blocks(inspect.cleandoc(kind.__doc__ or "").split("\n")), [])
    return rewritten(first)


def listed(prefix: str, kind: type) -> list[str]:
    """The settings of a class as objects."""
    out = []
    for one in settings(kind):
        default = f"; default ``{one.default}``" if one.default else "; **required**"
        out += [f".. setting:: {prefix}{one.name}", "", f"   {one.kind}{default}", ""]
        out += [f"   {sentence(escaped(one.meaning))}", ""] if one.meaning else []
    return out


def sentence(text: str) -> str:
    """With a capital where it begins with an ordinary word."""
    return text[0].upper() + text[1:] if re.match(r"[a-z]+[ ,]", text) else text


def settings(kind: type, prefix: str = "") -> Iterator[Setting]:
    """Every setting of a class; those of a table inside it by dotted names."""
    meanings = told(kind)
    for name, (asked, default) in described(kind).items():
        if dataclasses.is_dataclass(asked) and isinstance(asked, type):
            yield from settings(asked, f"{prefix}{name}.")
        else:
            yield Setting(prefix + name, in_words(asked), shown(default), meanings.get(name, ""))


def in_words(asked: Any) -> str:
    """The kind of a value; a part links to the list of its room."""
    found = [asked, *getattr(asked, "__args__", ())]
    contract = next((kinds.contract_of(one) for one in found if kinds.contract_of(one)), None)
    if contract is not None:
        noun = contract[0].__name__.lower()
        return f"part: :ref:`{noun} <parts-{noun}>`" + (" or null" if type(None) in found else "")
    return re.sub(r"'([^']*)'", r"``\1``", escaped(kinds.words(asked)))


def shown(default: Any) -> str:
    """A default as a recipe would write it; empty where there is none."""
    if default is inspect.Parameter.empty:
        return ""
    if isinstance(default, dict):
        return str(default.get("use", "{}"))
    if isinstance(default, bool) or default is None:
        return {True: "true", False: "false", None: "null"}[default]
    return str(default) or '""'


def told(kind: type) -> dict[str, str]:
    """The meaning of each argument: of settings of a search as declared, of others from docstrings."""
    declared = offers(kind).values() if dataclasses.is_dataclass(kind) else ()
    found = {one.name: f"{one.help} {one.more}".strip() for one in declared}
    for one in reversed(kind.__mro__):
        text = inspect.cleandoc(one.__dict__.get("__doc__") or "")
        for block in blocks(text.split("\n")):
            if block[0] in ("Args:", "Attributes:"):
                for item in re.split(r"\n(?=    \S)", "\n".join(block[1:])):
                    names, _, meaning = " ".join(item.split()).partition(": ")
                    found |= {name.strip(): meaning for name in names.split(",")}
    return found
