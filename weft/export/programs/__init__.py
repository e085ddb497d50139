"""The parts of the program that uses an exported model; `assemble` joins them to one file without Weft."""

import ast
from pathlib import Path


def assemble(part: str) -> str:
    """The program in one file: the part of the model's kind after the parts that it imports, and main.py.

    Args:
        part: such as "rewriting".

    Example:
        >>> "from weft.export" in assemble("rewriting")
        False
    """
    imports: set[str] = set()
    bodies, first = [], ""
    for name in [*_needed(part), "main"]:
        source = _source(name)
        tree = ast.parse(source)
        nodes = tree.body[1:]  # without the docstring
        first = ast.get_source_segment(source, tree.body[0]) or ""  # main.py's, at last
        heads = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        own = [node for node in heads if not (isinstance(node, ast.ImportFrom) and _ours(node))]
        imports |= {ast.unparse(node) for node in own}
        end = max(node.end_lineno or 0 for node in heads)
        bodies.append("\n".join(source.splitlines()[end:]).strip())
    library = ("import numpy", "import onnxruntime", "from tokenizers")
    outside = sorted(line for line in imports if line.startswith(library))
    inside = sorted(imports - set(outside), key=lambda line: (line.startswith("from"), line))
    head = [first, "\n".join(inside), "\n".join(outside)]
    return "\n\n".join(head) + "\n\n" + "\n\n\n".join(bodies) + "\n"


def _source(part: str) -> str:
    return (Path(__file__).parent / f"{part}.py").read_text("utf-8")


def _needed(part: str) -> list[str]:
    """A part, after the parts that it imports."""
    found: list[str] = []
    for node in ast.parse(_source(part)).body:
        if isinstance(node, ast.ImportFrom) and _ours(node):
            found += _needed(str(node.module).rpartition(".")[2])
    return list(dict.fromkeys([*found, part]))


def _ours(node: ast.ImportFrom) -> bool:
    return (node.module or "").startswith("weft")
