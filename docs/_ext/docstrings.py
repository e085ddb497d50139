"""Turns docstrings into reStructuredText for Sphinx; napoleon then sets Args, Returns and Raises.

Docstrings are plain text: `code` has single backticks, indented lines are formulas or lists, and symbols
such as * and | stand for themselves. The help of commands is treated the same way.
Read next: modules.py, which lists the modules of a page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LISTED = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$")
TITLED = re.compile(r"^(Example|Examples|Note|Source):$")
LEAD = re.compile(r"^(Source|Units|Shapes): ")
NEXT = re.compile(r"(?:^|\s+)Read next: .*$")
"""For readers of the source, who have the file before them."""

ITEM = re.compile(r"^(\d+\.|[-*]) +")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=400)
    for part in ("description", "options", "arguments"):
        app.connect(f"sphinx-click-process-{part}", double)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def process(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Rewrites the lines of one docstring."""
    if lines and lines[0].startswith("Alias for field number"):
        comment = field_comment(app, name)
        lines[:] = [escaped(comment)] if comment else []
    elif what == "method" and any(line.startswith("Define the computation performed") for line in lines):
        lines[:] = []  # torch's words on every forward
    else:
        lines[:] = rewritten(lines)


def double(app: Sphinx, context: Any, lines: list[str]) -> None:
    """Code in the help of a command gets double backticks, and options become code."""
    for at, line in enumerate(lines):
        line = re.sub(r"(?<![`:])`([^`]+)`(?!`)", r"``\1``", line)
        parts = re.split(r"(``.*?``)", line)
        plain = [re.sub(r"(?<![\w-])(--[a-z][\w-]*)", r"``\1``", part) for part in parts[::2]]
        if not line.lstrip().startswith(".. "):
            parts[::2] = plain
        lines[at] = "".join(parts)


def rewritten(lines: list[str]) -> list[str]:
    r"""A docstring as reStructuredText.

    Example:
        >>> rewritten(["The `x` of a * b.", "", "Args:", "    x: of", "        shape [B].", "    y: two"])
        ['The ``x`` of a \\* b.', '', 'Args:', '    x: of shape [B].', '    y: two', '']
    """
    out = []
    for block in blocks(lines):
        head = block[0]
        if LISTED.match(head):
            out += [head, *(f"    {line}" for line in arguments(dedented(block[1:]))), ""]
        elif TITLED.match(head):
            inner = rewritten(dedented(block[1:]))
            out += [head, *(f"    {line}" if line else "" for line in inner), ""]
        elif head.lstrip().startswith(">>>"):
            out += [*dedented(block), ""]
        else:
            out += [*paragraph(dedented(block)), ""]
    return out


def blocks(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines between empty ones; a titled section keeps all its indented lines."""
    block: list[str] = []
    for line in [*lines, "", "end"]:
        inside = bool(block) and bool(LISTED.match(block[0]) or TITLED.match(block[0]))
        ends = (line and not line.startswith(" ")) if inside else not line.strip()
        if ends and block:
            yield block
            block = []
        if line.strip() or inside:
            block.append(line)


def dedented(lines: list[str]) -> list[str]:
    """The lines without the indentation that all share."""
    least = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[least:].rstrip() for line in lines]


def arguments(lines: list[str]) -> list[str]:
    """Items `name: meaning`, each on one line."""
    items: list[str] = []
    for line in lines:
        if line.startswith(" ") and items:
            items[-1] += " " + line.strip()
        elif line.strip():
            items.append(line)
    parts = [re.match(r"([\w.*, ]+?: )(.*)", item, re.DOTALL) for item in items]
    return [
        part[1] + escaped(part[2]) if part else escaped(item) for item, part in zip(items, parts, strict=True)
    ]


def paragraph(lines: list[str]) -> list[str]:
    """Prose in one line; indented or numbered lines as a list, other indented lines as they stand."""
    out: list[str] = []
    for kind, run in runs(lines):
        text = " ".join(line.strip() for line in run)
        if kind == "prose":
            out += [LEAD.sub(r"**\1:** ", escaped(NEXT.sub("", text))), ""]
        elif kind == "list":
            out += [*items(run), ""]
        else:
            out += ["::", "", *(f"    {line}" for line in dedented(run)), ""]
    return out[:-1]


def runs(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Neighbouring lines of one kind: prose, list or shown as it stands."""
    kind, run = "", list[str]()
    for line in lines:
        inside = line.startswith(" ")
        item = bool(ITEM.match(line.strip()))
        new = "list" if item or (kind == "list" and inside) else "shown" if inside else "prose"
        if new != kind and run:
            yield kind, run
            run = []
        kind = new
        run.append(line)
    if run:
        yield kind, run


def items(lines: list[str]) -> list[str]:
    """List items, each on one line."""
    found: list[str] = []
    for line in lines:
        mark = ITEM.match(line.strip())
        if mark:
            found.append(f"{mark[1]} {line.strip()[mark.end() :]}")
        else:
            found[-1] += " " + line.strip()
    return [f"{one.split(' ', 1)[0]} {escaped(one.split(' ', 1)[1])}" for one in found]


def escaped(text: str) -> str:
    """Inline text: code in double backticks, everything else as it stands."""
    parts = re.split(r"`([^`\n]+)`", text)
    return "".join(f"``{part.strip()}``" if at % 2 else _plain(part) for at, part in enumerate(parts))


def _plain(text: str) -> str:
    return re.sub(r"([\\*|_`])", r"\\\1", text)


def field_comment(app: Sphinx, name: str) -> str:
    """The comment beside a field of a NamedTuple."""
    module, owner = name.rsplit(".", 2)[0], name.rsplit(".", 2)[1:]
    kind = getattr(__import__(module, fromlist=["_"]), owner[0], None)
    try:
        source = inspect.getsource(kind) if kind else ""
    except (OSError, TypeError):
        return ""
    found = re.search(rf"^\s+{re.escape(owner[1])}: [^#\n]*# *(.+)$", source, re.MULTILINE)
    return found[1] if found else ""
