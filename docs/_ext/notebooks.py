"""Notebooks of the course for JupyterLab: pictures inside, formulas typeset, solutions folded.

    python docs/_ext/notebooks.py build/course       every page of docs/course
    python docs/_ext/notebooks.py build/course --language hr
    python docs/_ext/notebooks.py build/homework --homework

A language is a folder of docs/_locale. The last one writes release/CHAPTER/CHAPTER.ipynb without solutions
and source/CHAPTER/CHAPTER.ipynb with them, both with the cells that nbgrader marks, and nbgrader_config.py,
which gives cells time to train.
`--site ADDRESS` turns links to other pages into links to the site; without it only their words are kept.
executed.py cleans the site's downloads the same way.
Read next: weft/testing/exercises.py, the checks of the exercises.
"""

import argparse
import base64
import mimetypes
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import nbformat
from languages import catalog, messages
from languages import translated as languages
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from named import drawn, kit
from nbformat.v4 import new_code_cell, new_markdown_cell

from weft.testing.exercises import EXERCISES
from weft.testing.translations import translated

DOCS = Path(__file__).resolve().parents[1]
SOLUTIONS = DOCS / "course" / "solutions.py"
FENCE = re.compile(r"^(`{3,}|~{3,}|:{3,})(?:\{([\w:-]+)\})?[ ]*(.*)$")
CODE_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(
    r"(?P<code>(?P<ticks>`+)[^`].*?(?P=ticks))"
    r"|!\[(?P<alt>[^\]]*)\]\((?P<picture>[^)\s]+)\)"
    r"|\[(?P<words>[^\]]+)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL,
)
NBGRADER = """c = get_config()
c.CourseDirectory.course_id = "weft"
c.Execute.timeout = 900  # seconds for a cell; some of them train a network, and nbgrader's own limit is 30
c.Execute.iopub_timeout = 60
"""
CHECKED = "Define {0} Then type `weft check {1} FILE`, or run the check in a cell:"
CHECK = 'from weft.testing import check_exercise\n\ncheck_exercise("{}", globals(){})'
MARKDOWN = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
MACROS = {r"\softmax": r"\operatorname{softmax}", r"\R": r"\mathbb{R}"}
"""What conf.py defines for KaTeX."""


class Block(NamedTuple):
    """A piece of a page: text, code that is only shown, or a directive."""

    kind: str  # "text", "code", or the directive's name
    argument: str
    lines: list[str]


@dataclass
class Page:
    """Where a page stands, and what becomes of its links.

    Args:
        name: its path below docs, without .md.
        site: the address of the built documentation, or "".
        beside: names of pages whose notebooks lie in the same folders.
        homework: None for folded solutions, "release" without any, "source" with cells that nbgrader strips.
        language: of the text, a folder of docs/_locale; en for English.
    """

    name: str
    site: str = ""
    beside: frozenset[str] = frozenset()
    homework: str | None = None
    pictures: dict[str, dict[str, str]] = field(default_factory=dict)
    solving: bool = False  # between solution-start and solution-end
    language: str = "en"

    @cached_property
    def words(self) -> Mapping[str, str]:
        """The translations of this page's texts, and of what all notebooks say."""
        if self.language == "en":
            return {}
        books = [catalog(self.language, name) for name in ("live", "sphinx", self.name)]
        return {" ".join(key.split()): text for book in books for key, text in messages(book).items()}

    def said(self, text: str) -> str:
        """A text in the language of the notebook."""
        return self.words.get(text, text)

    def translated(self, text: str) -> str:
        """Markdown with its paragraphs, headings, cells of tables and formulas in the language."""
        out, at, line = list[str](), 0, 0
        starts = [0, *(found.end() for found in re.finditer("\n", text))]
        for token in MARKDOWN.parse(text) if self.words else ():
            line = token.map[0] if token.map else line
            words = token.content.split()
            if token.type not in ("inline", "math_block") or not words:
                continue
            place = re.compile(r"\s+".join(map(re.escape, words)))
            found = place.search(text, max(at, starts[line]))
            if found and (said := self.words.get(" ".join(words))):
                out += [text[at : found.start()], said]
                at = found.end()
        return "".join([*out, text[at:]])


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page; a fence ends at the first one that is as long."""
    lines, at, plain = text.split("\n"), 0, []
    while at < len(lines):
        begin = FENCE.match(lines[at])
        if not begin:
            plain.append(lines[at])
            at += 1
            continue
        if plain:
            yield Block("text", "", plain)
            plain = []
        end = at + 1
        while end < len(lines) and not re.fullmatch(
            re.escape(begin[1]) + begin[1][0] + "*", lines[end].rstrip()
        ):
            end += 1
        if begin[2]:
            yield Block(begin[2], begin[3], lines[at + 1 : end])
        else:
            yield Block("code", begin[3], lines[at + 1 : end])
        at = end + 1
    if plain:
        yield Block("text", "", plain)


def options(lines: list[str]) -> tuple[dict[str, str], str]:
    """The `:key: value` lines of a directive, and the rest."""
    found = {}
    while lines and (match := re.fullmatch(r":([\w-]+):[ ]*(.*)", lines[0])):
        found[match[1]] = match[2]
        lines = lines[1:]
    return found, "\n".join(lines).strip("\n")


def clean(book: nbformat.NotebookNode, page: Page) -> nbformat.NotebookNode:
    """The notebook of a page without anything that only Sphinx understands."""
    cells = []
    for cell in book.cells:
        if cell.cell_type == "code":
            cells += code(cell, page)
            continue
        for one in rendered(cell.source, page):
            if isinstance(one, str):
                if cells and cells[-1].cell_type == "markdown" and not cells[-1].metadata.get("nbgrader"):
                    cells[-1].source += "\n\n" + one
                else:
                    cells.append(new_markdown_cell(one))
            else:
                cells.append(one)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
        if cell.cell_type == "markdown":
            used = {
                key: value for key, value in page.pictures.items() if f"(attachment:{key})" in cell.source
            }
            cell.update({"attachments": used} if used else {})
    language = {"name": "python", "pygments_lexer": "ipython3"}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(
        cells=cells,
        metadata={"kernelspec": book.metadata.get("kernelspec", kernel), "language_info": language},
    )


def code(cell: nbformat.NotebookNode, page: Page) -> list[nbformat.NotebookNode]:
    """A code cell: folded if the site hides it or it belongs to a solution, left out of homework."""
    if page.solving and page.homework:
        return []
    tags = set(cell.metadata.get("tags", ()))
    if page.solving or tags & {"remove-input", "hide-input", "remove-cell", "hide-cell"}:
        cell.metadata["jupyter"] = {"source_hidden": True}
    if page.solving:
        cell.metadata["jupyter"]["outputs_hidden"] = True
    return [cell]


def rendered(text: str, page: Page) -> Iterator[str | nbformat.NotebookNode]:
    """Markdown of a piece of a page, and cells for nbgrader."""
    for block in blocks(text):
        for one in of_block(block, page):
            if isinstance(one, str) and page.solving:
                one = "" if page.homework else folded(one, page)
            if one and (not isinstance(one, str) or one.strip()):
                yield one.strip("\n") if isinstance(one, str) else one


def of_block(block: Block, page: Page) -> Iterator[str | nbformat.NotebookNode]:
    """What a block becomes."""
    if block.kind == "text":
        yield inline("\n".join(block.lines), page)
        return
    if block.kind == "code":
        yield "\n".join([f"```{block.argument}", *block.lines, "```"])
        return
    given, body = options(block.lines)
    if block.kind == "diagram":
        yield picture(f"{block.argument}.svg", drawn(block.argument).encode(), block.argument, page)
        yield inline(body, page)
    elif block.kind in ("figure", "image"):
        path = (DOCS / page.name).parent / block.argument
        yield picture(path.name, path.read_bytes(), given.get("alt", ""), page)
        yield inline(body, page)
    elif block.kind == "exercise":
        yield from exercise(given["label"], block.argument, body, page)
    elif block.kind == "solution" and not page.homework:
        yield folded("\n\n".join(one for one in rendered(body, page) if isinstance(one, str)), page)
    elif block.kind in ("solution-start", "solution-end"):
        page.solving = block.kind == "solution-start"
    elif block.kind in ("admonition", "note", "tip", "warning"):
        title = page.said(block.argument if block.kind == "admonition" else block.kind.capitalize())
        inside = "\n\n".join(one for one in rendered(body, page) if isinstance(one, str))
        yield "\n".join(f"> {line}".rstrip() for line in f"**{title}**\n\n{inside}".split("\n"))
    elif block.kind == "question":
        asked, choices, answer = inline(body, page).split("\n\n", 2)
        letters = iter("ABCD")
        choices = re.sub(r"^- ", lambda _: f"- **{next(letters)}**: ", choices, flags=re.MULTILINE)
        yield f"**{page.said('A question')}.** {asked}\n\n{choices}"
        yield folded(f"**{block.argument}**. {answer}", page, "The answer")
    elif block.kind == "claims":
        yield link(page.said("What was measured"), "../claims.md", page)
    elif block.kind == "live":  # runs in a browser only
        path, title = DOCS / "pictures" / "live" / f"{block.argument}.png", page.said(given.get("title", ""))
        drawn_part = picture(path.name, path.read_bytes(), title, page) if path.is_file() else ""
        inside = inline(f"**{title}** ({page.said('moves on the site')})\n\n{body}\n\n{drawn_part}", page)
        yield "\n".join(f"> {line}".rstrip() for line in inside.split("\n"))
    elif block.kind in ("grid", "card", "tab-set", "tab-item", "dropdown"):
        yield f"**{page.said(block.argument)}**" if block.kind != "grid" and block.argument else ""
        yield from rendered(body, page)
    elif block.kind not in ("toctree", "solution"):
        raise ValueError(f"docs/{page.name}.md: notebooks have no form for the directive {{{block.kind}}}")


def folded(text: str, page: Page, title: str = "Solution") -> str:
    """Text that a click opens."""
    return f"<details><summary>{page.said(title)}</summary>\n\n{text.strip()}\n\n</details>"


def picture(name: str, content: bytes, alt: str, page: Page) -> str:
    """An attachment of the notebook; an SVG is inside the text, because JupyterLab attaches no SVG."""
    kind, encoded = mimetypes.guess_type(name)[0] or "image/png", base64.b64encode(content).decode()
    if kind == "image/svg+xml":
        return f"![{alt}](data:{kind};base64,{encoded})"
    page.pictures[name] = {kind: encoded}
    return f"![{alt}](attachment:{name})"


def inline(text: str, page: Page) -> str:
    """Running text in the page's language, its links and pictures, and formulas without conf.py's macros."""
    text = page.translated(text)
    for macro, meaning in MACROS.items():
        text = re.sub(re.escape(macro) + r"(?![a-zA-Z])", lambda _, to=meaning: to, text)
    return INLINE.sub(lambda found: _inline(found, page), text)


def _inline(found: re.Match[str], page: Page) -> str:
    if found["code"]:
        return found[0]
    if found["picture"]:
        if found["picture"].startswith(("http", "attachment:", "data:")):
            return found[0]
        path = (DOCS / page.name).parent / found["picture"]
        return picture(path.name, path.read_bytes(), found["alt"], page)
    return link(found["words"], found["target"], page)


def link(words: str, target: str, page: Page) -> str:
    """A link to a notebook beside this one, to the site, or only its words."""
    words = INLINE.sub(lambda found: _inline(found, page), words)
    if re.match(r"\w+:|#", target):
        return words if target.startswith("#") else f"[{words}]({target})"
    path, _, anchor = target.partition("#")
    name = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), path))
    name = re.sub(r"\.(md|rst)$", "", name)
    if name in page.beside and not page.homework:
        return f"[{words}]({posixpath.relpath(name, posixpath.dirname(page.name))}.ipynb)"
    if page.site:
        return f"[{words}]({page.site.rstrip('/')}/{name}.html{f'#{anchor}' if anchor else ''})"
    return words


def exercise(label: str, title: str, body: str, page: Page) -> Iterator[str | nbformat.NotebookNode]:
    """The text, how to check an answer, and in homework the cells that nbgrader marks."""
    one = EXERCISES.get(label)
    text = "\n\n".join(part for part in rendered(body, page) if isinstance(part, str))
    check = CHECK.format(label, "" if page.language == "en" else f', language="{page.language}"')
    yield f"**{page.said('Exercise')} {title or label}**\n\n{text}"
    if not page.homework:
        if one:
            yield page.said(CHECKED).format(translated(one.asks, page.language), label)
            yield f"```python\n{check}\n```"
        return
    if one is None:  # in words, marked by a person
        yield graded(new_markdown_cell(page.said("*Your answer here.*")), label, grade=True, solution=True)
        return
    inside = f"### BEGIN SOLUTION\n{solutions()[label]}\n### END SOLUTION"
    source = inside if page.homework == "source" else "# YOUR CODE HERE\nraise NotImplementedError()"
    asks = translated(f"Define {one.asks}", page.language)
    yield graded(new_code_cell(f"# {asks}\n{source}"), label, grade=False, solution=True)
    yield graded(new_code_cell(check), f"test-{label}", grade=True, solution=False)


def graded(cell: nbformat.NotebookNode, name: str, *, grade: bool, solution: bool) -> nbformat.NotebookNode:
    """A cell with nbgrader's metadata; a test cell is locked."""
    cell.metadata["nbgrader"] = {
        "grade_id": name,
        "grade": grade,
        "solution": solution,
        "locked": not solution,
        "task": False,
        "schema_version": 3,
        **({"points": 1} if grade else {"cell_type": cell.cell_type}),
    }
    return cell


def solutions() -> dict[str, str]:
    """The answers of solutions.py, by exercise."""
    parts = re.split(r"^# %% ([\w-]+)\n", SOLUTIONS.read_text("utf-8"), flags=re.MULTILINE)
    return {label: text.strip() for label, text in zip(parts[1::2], parts[2::2], strict=True)}


def text_of(path: Path) -> str:
    """The Markdown of a page, without its header."""
    return re.sub(r"\A---\n.*?\n---\n", "", path.read_text("utf-8"), flags=re.DOTALL)


def read(path: Path) -> nbformat.NotebookNode:
    """The cells of a page, code as in the site."""
    cells = []
    for number, part in enumerate(CODE_CELL.split(text_of(path))):
        if number % 2:
            tags = re.match(r":tags: \[(.*)\]\n", part)
            cell = new_code_cell(
                re.sub(r"\A(:[\w-]+:[^\n]*\n)+|\A---\n.*?\n---\n", "", part, flags=re.DOTALL).strip("\n")
            )
            cell.metadata.update({"tags": tags[1].split(", ")} if tags else {})
            cells.append(cell)
        elif part.strip():
            cells.append(new_markdown_cell(part.strip("\n")))
    return nbformat.v4.new_notebook(cells=cells)


def write(out: Path, *, site: str = "", homework: bool = False, language: str = "en") -> list[Path]:
    """Writes the notebooks of every page of docs/course; returns their paths."""
    names = [
        path.relative_to(DOCS).with_suffix("").as_posix()
        for path in sorted((DOCS / "course").rglob("*.md"))
        if path.parent.name != "slides"
    ]
    if homework:
        names = [name for name in names if "{exercise}" in (DOCS / f"{name}.md").read_text("utf-8")]
    made = []
    kit().WORDS.update(messages(catalog(language, "diagrams")))
    if homework:
        out.mkdir(parents=True, exist_ok=True)
        (out / "nbgrader_config.py").write_text(NBGRADER, "utf-8")
    for name in names:
        for way in ("release", "source") if homework else (None,):
            page = Page(name, site, frozenset(names), way, language=language)
            book = clean(read(DOCS / f"{name}.md"), page)
            short = Path(name).relative_to("course")
            place = out / way / short / f"{short.name}.ipynb" if way else out / f"{short}.ipynb"
            place.parent.mkdir(parents=True, exist_ok=True)
            nbformat.validate(book)
            nbformat.write(book, place)
            made.append(place)
    return made


def main() -> None:
    """Writes what the command line asks for."""
    parser = argparse.ArgumentParser(description="Write the notebooks of the course.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--site", default="", help="address of the documentation, for links")
    parser.add_argument(
        "--homework", action="store_true", help="cells for nbgrader, with and without solutions"
    )
    parser.add_argument("--language", default="en", choices=["en", *languages()], help="of the texts")
    given = parser.parse_args()
    made = write(given.out, site=given.site, homework=given.homework, language=given.language)
    print(f"{given.out}: {len(made)} notebooks")


if __name__ == "__main__":
    main()
