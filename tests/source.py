"""Weft's source for tests: files, names, imports. This file imports nothing of weft."""

import ast
import functools
from collections.abc import Callable, Iterable, Iterator
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


@functools.cache
def text_of(path: Path) -> str:
    """Each file is read once, and parsed once, for all rules."""
    return path.read_text("utf-8")


@functools.cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


@functools.cache
def nodes(source: str) -> list[ast.AST]:
    return list(ast.walk(parsed(source)))


def broken(rule: Callable[[Path], list[str]], paths: Iterable[Path] = PACKAGE) -> list[str]:
    """Where files break a rule, as file: what."""
    return [f"{name_of(path)}: {what}" for path in paths for what in rule(path)]


def imported(source: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, at the top level or inside a function."""
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "." * node.level + (node.module or "")
        elif isinstance(node, ast.ImportFrom) and node.module == "weft":
            yield from ((node.lineno, f"weft.{name.name}") for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""
