"""Weft's source for tests: files, names, imports. This file imports nothing of weft."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = sorted((ROOT / "weft").rglob("*.py"))
PYTHON = PACKAGE + [
    path
    for room in ("tests", "examples", "benchmarks", "experiments")
    for path in (ROOT / room).rglob("*.py")
]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(source: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, at the top level or inside a function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "." * node.level + (node.module or "")
        elif isinstance(node, ast.ImportFrom) and node.module == "weft":
            yield from ((node.lineno, f"weft.{name.name}") for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""
