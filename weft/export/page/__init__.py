"""The files of the web page that runs an exported model; formats/web.py copies them.

The documentation site has the same program, for the live parts of its chapters: docs/_ext/live.py.
"""

import re
from pathlib import Path

PAGE = Path(__file__).parent


def joined(name: str) -> str:
    """A module of page/ and those that it imports as one script: each is a function that gives its exports.

    Example:
        >>> "import {" in joined("weft.js")
        False
    """
    order: list[str] = []

    def visit(one: str) -> None:
        for found in _imports(one):
            visit(found)
        if one not in order:
            order.append(one)

    visit(name)
    return "const modules = {};\n" + "".join(map(_as_function, order))


def _imports(name: str) -> list[str]:
    return re.findall(r"^import .* from '\./(.*)';$", (PAGE / name).read_text("utf-8"), re.MULTILINE)


def _as_function(name: str) -> str:
    source = (PAGE / name).read_text("utf-8")
    source = re.sub(
        r"^import (\{.*\}) from '\./(.*)';$", r"const \1 = modules['\2'];", source, flags=re.MULTILINE
    )
    exports = re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", source, re.MULTILINE)
    source = re.sub(r"^export ", "", source, flags=re.MULTILINE)
    return f"modules['{name}'] = (() => {{\n{source}return {{ {', '.join(exports)} }};\n}})();\n"
