"""No import cycles: no file's imports, at the top level, inside a function or for types, lead back to it.

Read next: test_house.py.
"""

import ast

from tests.source import PACKAGE, ROOT, nodes, text_of


def imported(source: str, modules: set[str]) -> set[str]:
    """Those of `modules` that a source imports."""
    names: set[str] = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{name.name}" for name in node.names}
            names |= inner & modules if inner <= modules else (inner & modules) | {node.module}
    return names & modules


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Every set of modules that import each other, sorted."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting.extend(new)
        reached[start] = seen
    groups = {
        tuple(sorted(other for other in seen if name in reached[other]))
        for name, seen in reached.items()
        if name in seen
    }
    return sorted(map(list, groups))


def weft_imports() -> dict[str, set[str]]:
    files = {}
    for path in PACKAGE:
        parts = path.relative_to(ROOT).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    sources = {name: text_of(path) for name, path in files.items()}
    return {name: imported(source, set(files)) - {name} for name, source in sources.items()}


def test_imports_make_no_circle() -> None:
    assert circles(weft_imports()) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    typed = "if TYPE_CHECKING:\n    from weft.b import B\n"
    late = "def f():\n    from weft.c import C\n    from weft import d\n"
    assert imported(typed + late, {"weft", "weft.b", "weft.c", "weft.d"}) == {
        "weft.b",
        "weft.c",
        "weft.d",
    }
