"""The parts of the program that uses an exported model; `assemble` joins them to one file without Weft."""

import ast
from pathlib import Path

WEFT = Path(__file__).parents[2]

ERRORS = '''\
class DataError(ValueError):
    """A file is missing, damaged or not what it should be."""

    def __init__(self, why: str, *, path: object = "", line: int = 0) -> None:
        place = f"{path}:{line}" if line else str(path or "")
        super().__init__(f"{place}: {why}" if place else why)
'''
"""What the program has instead of ../../errors.py."""


def assemble(part: str) -> str:
    """The program in one file: the part of the model's kind after the files that it imports, and main.py.

    These are other parts, and files of Weft that import nothing else of Weft but errors.

    Example:
        >>> "from weft.export" in assemble("rewriting")
        False
    """
    imports: set[str] = set()
    bodies, first = list[str](), ""
    parts = [*_needed(f"weft.export.programs.{part}"), *_needed("weft.export.programs.main")]
    for name in dict.fromkeys(parts):
        source = _source(name)
        tree = ast.parse(source)
        nodes = tree.body[1:]  # without the docstring
        first = ast.get_source_segment(source, tree.body[0]) or ""  # main.py's, at last
        heads = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        own = [node for node in heads if not (isinstance(node, ast.ImportFrom) and _ours(node))]
        imports |= {ast.unparse(node) for node in own}
        end = max(node.end_lineno or 0 for node in heads)
        bodies.append("\n".join(source.splitlines()[end:]).strip())
    if any("DataError" in body for body in bodies):
        bodies.insert(0, ERRORS.strip())
    library = ("import numpy", "import onnxruntime", "from tokenizers", "from PIL")
    outside = sorted(line for line in imports if line.startswith(library))
    inside = sorted(imports - set(outside), key=lambda line: (line.startswith("from"), line))
    head = [first, "\n".join(inside), "\n".join(outside)]
    return "\n\n".join(head) + "\n\n" + "\n\n\n".join(bodies) + "\n"


def _source(module: str) -> str:
    return WEFT.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text("utf-8")


def _needed(module: str) -> list[str]:
    """A module, after the modules of Weft that it imports."""
    found: list[str] = []
    for node in ast.parse(_source(module)).body:
        if isinstance(node, ast.ImportFrom) and _ours(node) and node.module != "weft.errors":
            found += _needed(str(node.module))
    return list(dict.fromkeys([*found, module]))


def _ours(node: ast.ImportFrom) -> bool:
    return (node.module or "").startswith("weft")
