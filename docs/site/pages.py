"""Makes pages of the site while it builds: one a room, one a task, and source files with a line to jump to.

All is read from docstrings, signatures and headers of recipes, by parsing: nothing is imported, and nothing
written twice. docs/tasks/NAME.md, where there is one, is what the page of a task begins with.
Read next: mkdocs.yml; docs/equations.md, whose code and tests become links here.
"""

import ast
import html
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parents[2]
WEFT = ROOT / "weft"
CELL = re.compile(r"`((?:weft|tests)/[\w/]+\.py)(?:` `|::)([\w.]+)`")
LISTED = {"Args:", "Attributes:", "Raises:", "Returns:"}
"""Parts of a docstring that are lists."""

CLAIMS = {
    "A1": (6,), "A4": (7,), "A5": (7, 13), "A7": (13,), "A10": (13,), "C1": (2,), "C3": (4, 14), "C5": (12,),
    "C7": (3,), "C8": (3,), "C9": (2,), "D2": (11,), "D3": (5,), "D5": (5,), "G1": (2,), "G2": (2,),
    "G3": (12,), "M1": (1,), "M5": (8,), "M7": (10,), "M8": (9,), "M15": (2,),
}  # fmt: skip
"""Which claims' pictures show an equation at work."""


def on_config(config: Any) -> Any:
    """Rooms, tasks, and pages that the menu does not name enter it."""
    named = [name for entry in config.nav for name in entry.values() if isinstance(name, str)]
    others = sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.name not in named)
    lists = {
        "Tasks": [f"tasks/{name}.md" for name in tasks()],
        "Rooms": [f"rooms/{name}.md" for name in rooms()],
        "More": others,
    }
    config.nav = [{name: lists.get(name, value) for name, value in entry.items()} for entry in config.nav]
    return config


def on_files(files: Files, config: Any) -> Files:
    """The generated pages join the others; a task's own words come first."""
    made = {f"rooms/{name}.md": room_page(name) for name in rooms()}
    for name in tasks():
        own = ROOT / "docs" / "tasks" / f"{name}.md"
        made[f"tasks/{name}.md"] = task_page(name, own.read_text("utf-8") if own.is_file() else "")
    made |= {f"source/{name}.md": source_page(name) for name in named_files()}
    for place, text in made.items():
        old = files.get_file_from_path(place)
        if old is not None:
            files.remove(old)
        # source pages are reached by links, not by the menu
        menu = InclusionLevel.NOT_IN_NAV if place.startswith("source/") else InclusionLevel.INCLUDED
        new = File.generated(config, place, content=text, inclusion=menu)
        files.append(new)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """In the table of equations, code and tests become links, and ids show their pictures."""
    if page.file.src_uri != "equations.md":
        return markdown
    return "\n".join(_linked(line) if line.startswith("|") else line for line in markdown.split("\n"))


def rooms() -> list[str]:
    """The folders of the package, and its single files as one."""
    folders = [path.name for path in sorted(WEFT.iterdir()) if path.is_dir() and any(path.glob("*.py"))]
    return ["ground", *folders]


def tasks() -> list[str]:
    """The task files: those with a class that has recipe sections."""
    files = sorted((WEFT / "tasks").glob("*.py"))
    return [path.stem for path in files if path.stem != "task" and sections(path)]


def room_page(name: str) -> str:
    """Every file of a room: its docstring, and the signatures of what is public."""
    if name == "ground":
        about = "What stands at the top of the package: shapes, masks, trees of state, models, runs."
        files = sorted(path for path in WEFT.glob("*.py") if not path.name.startswith("__"))
    else:
        about = docstring(WEFT / name / "__init__.py") or ""
        files = sorted(path for path in (WEFT / name).rglob("*.py") if path.name != "__init__.py")
    title = "Ground floor, models, runs" if name == "ground" else f"weft.{name}"
    lines = [f"# {title}", "", *shown(about)]
    for path in files:
        lines += [f"## {path.relative_to(WEFT).as_posix()}", "", *shown(docstring(path))]
        for signature, first in public(path):
            lines += ["```python", signature, "```", "", first, ""]
    return "\n".join(lines)


def task_page(name: str, own: str) -> str:
    """What a task is, how it is used, its recipes, and every setting of its own sections."""
    path = WEFT / "tasks" / f"{name}.py"
    lines = [own.strip() or f"# Task: {name}", "", *shown(docstring(path))]
    recipes = sorted((ROOT / "recipes" / name).glob("*.yaml"))
    if recipes:
        lines += ["## Use it", "", "```console"]
        if (WEFT / "commands" / "init" / f"{name}.py").exists():
            lines += [f"$ weft init {name} --help"]
        lines += [f"$ weft train {recipes[0].relative_to(ROOT).as_posix()}{_folder(recipes[0])}"]
        lines += [f"$ weft evaluate runs/{recipes[0].stem}", f"$ weft predict runs/{recipes[0].stem}"]
        lines += (
            [f"$ weft inspect runs/{recipes[0].stem}"] if (WEFT / "commands" / "inspect.py").exists() else []
        )
        lines += ["```", "", "## Recipes", "", "| recipe | what | what to expect |", "|---|---|---|"]
        for recipe in recipes:
            about, _, expected = _header(recipe)
            lines += [f"| `{recipe.relative_to(ROOT).as_posix()}` | {_cell(about)} | {_cell(expected)} |"]
    lines += ["", "## Settings of its recipe", ""]
    for section, words in sections(path):
        lines += [f"### {section}", "", *shown(words)]
    return "\n".join(lines)


def shown(words: str) -> list[str]:
    """A docstring as HTML: paragraphs that wrap, arguments as a list, formulas line by line as they stand."""
    found = []
    for block in re.split(r"\n[ ]*\n", words.strip()) if words.strip() else []:
        head, *rest = block.split("\n")
        if head in LISTED and rest:
            items = re.split(r"\n(?=\S)", textwrap.dedent("\n".join(rest)))
            pairs = [" ".join(item.split()).partition(": ") for item in items]
            told = "".join(f"<dt>{_html(name)}</dt><dd>{_html(what)}</dd>" for name, _, what in pairs)
            found += [f"<p><strong>{head}</strong></p><dl>{told}</dl>", ""]
        elif any(line.startswith("  ") for line in (head, *rest)):
            found += [f'<pre style="white-space: pre-wrap">{html.escape(block)}</pre>', ""]
        else:
            found += [f"<p>{_html(' '.join(block.split()))}</p>", ""]
    return found


def source_page(name: str) -> str:
    """A source file with numbered lines."""
    return f'# {name}\n\n```python linenums="1"\n{(ROOT / name).read_text("utf-8")}```\n'


def named_files() -> list[str]:
    """The files that the table of equations names."""
    return sorted({match[1] for match in CELL.finditer((ROOT / "docs" / "equations.md").read_text("utf-8"))})


def docstring(path: Path) -> str:
    """A file's docstring."""
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "" if path.exists() else ""


def public(path: Path) -> Iterator[tuple[str, str]]:
    """(signature, first paragraph) of each public class and function."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            words = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
            yield _signature(node), _cell(words)


def sections(path: Path) -> list[tuple[str, str]]:
    """(name of a recipe's section, the docstring of the class that reads it) of a task's file."""
    tree = ast.parse(path.read_text("utf-8"))
    origin = {
        name.asname or name.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.AnnAssign)
            and ast.unparse(node.target) == "sections"
            and isinstance(node.value, ast.Dict)
        ):
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return [(ast.literal_eval(key), _words(ast.unparse(kind), origin)) for key, kind in pairs if key]
    return []


def _words(kind: str, origin: dict[str, str | None]) -> str:
    module = origin.get(kind) or ""
    file = ROOT / (module.replace(".", "/") + ".py")
    for node in ast.parse(file.read_text("utf-8")).body if file.is_file() else []:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == kind:
            return ast.get_docstring(node) or kind
    return kind


def _signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    if isinstance(node, ast.FunctionDef):
        gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"def {node.name}({ast.unparse(node.args)}){gives}"
    made = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
    return f"class {node.name}({ast.unparse(made[0].args)})" if made else f"class {node.name}"


def _html(words: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words))


def _header(recipe: Path) -> list[str]:
    lines = [line.removeprefix("#").strip() for line in recipe.read_text("utf-8").split("\n")[:3]]
    return [*lines, "", "", ""][:3]


def _folder(recipe: Path) -> str:
    return " data.folder=PATH" if "data.folder=PATH" in _header(recipe)[1] else ""


def _cell(words: str) -> str:
    return (
        words.replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("[", "\\[")
        .replace("*", "\\*")
        .replace("_", "\\_")
    )


def _linked(line: str) -> str:
    """A row of the table of equations with links."""
    line = CELL.sub(
        lambda match: f"[`{match[2]}`](source/{match[1]}.md#__codelineno-0-{_line(match[1], match[2])})", line
    )
    row = re.match(r"\| ([A-Z]\d+) \|", line)
    claims = CLAIMS.get(row[1], ()) if row else ()
    seen = [n for n in claims if (ROOT / "docs" / "pictures" / "claims" / f"{n:02}.png").exists()]
    pictures = " ".join(f"[picture](claims.md#claim-{number})" for number in seen)
    return line.replace(f"| {row[1]} |", f"| {row[1]} {pictures} |", 1) if row and pictures else line


def _line(name: str, symbol: str) -> int:
    """Where a symbol begins in a file."""
    body: list[ast.stmt] = ast.parse((ROOT / name).read_text("utf-8")).body
    found = 1
    for part in symbol.split("."):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part:
                found, body = node.lineno, node.body
                break
    return found
