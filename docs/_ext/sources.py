"""Pages of source files, with a line to jump to: what [source] links to, and the code and tests of equations.

`linkcode_resolve` answers sphinx.ext.linkcode. Read next: inline_code.py: it links files that a page names.
"""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "_source"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def link(shown: str, file: str, symbol: str, up: str) -> nodes.reference:
    """A link to a symbol of a file.

    Raises:
        LookupError: there is no such symbol.
    """
    uri = f"{up}{FOLDER}/{file}.html#L-{line(file, symbol)}"
    node = nodes.reference("", "", internal=True, refuri=uri)
    node += nodes.literal(shown, shown)
    return node


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """The address of a documented object, from a page of reference/api."""
    file = f"{info['module'].replace('.', '/')}.py"
    if not (ROOT / file).is_file():
        file = f"{info['module'].replace('.', '/')}/__init__.py"
    try:
        return f"../../{FOLDER}/{file}.html#L-{line(file, info['fullname'])}"
    except (LookupError, OSError):
        return None


def line(file: str, symbol: str) -> int:
    """Where a symbol begins; 1 without a symbol.

    Raises:
        LookupError: there is none of that name.
    """
    if not symbol:
        return 1
    try:
        return lines(file)[symbol]
    except KeyError:
        raise LookupError(f"{file} has no {symbol}") from None


@functools.cache
def lines(file: str) -> dict[str, int]:
    """The line of each class, function, method and constant of a file."""
    return dict(_named(ast.parse((ROOT / file).read_text("utf-8")).body, ""))


def _named(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, int]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name, node.lineno
            yield from _named(node.body if isinstance(node, ast.ClassDef) else [], f"{prefix}{node.name}.")
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield from ((prefix + one.id, node.lineno) for one in targets if isinstance(one, ast.Name))


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file of weft and tests that has changed."""
    highlighter = app.builder.highlighter
    for path in sorted([*(ROOT / "weft").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        file = path.relative_to(ROOT).as_posix()
        made = Path(app.outdir, FOLDER, f"{file}.html")
        if made.exists() and made.stat().st_mtime > path.stat().st_mtime:
            continue
        text = path.read_text("utf-8")
        code = highlighter.highlight_block(text, "python", linenos="inline", lineanchors="L") if text else ""
        yield f"{FOLDER}/{file}", {"title": file, "body": f"<h1>{file}</h1>{code}"}, "page.html"
