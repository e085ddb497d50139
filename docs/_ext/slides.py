"""Slides of the course, one deck for each chapter: python docs/_ext/slides.py build/slides [LANGUAGE]

docs/course/slides/NAME.md is the deck of a chapter, docs/_locale/LANGUAGE/slides/NAME.md the same deck in
another language; docs/contributing-docs.md has the rules. Each becomes one HTML file for reveal.js. Diagrams,
outputs, live parts, questions and exercises come from the chapter; ?showNotes=true shows the notes.
Nothing is fetched: reveal.js and KaTeX lie beside the files. Read next: slides.html and decks.html, what the
files are made of; notebooks.py, which reads the pages.
"""

import re
import shutil
import sys
from base64 import b64decode, b64encode
from html import escape
from importlib.util import find_spec
from os.path import relpath
from pathlib import Path
from string import Template

import nbformat
from languages import LOCALE, catalog, messages
from markdown_it import MarkdownIt
from named import drawn, kit
from notebooks import DOCS, Block, Page, blocks, inline, options, text_of

HERE = Path(__file__).parent
CHAPTER = re.compile(r"^\| \d+ \| \[.+?\]\(([\w-]+)\.md\)", re.MULTILINE)
FORMULA = re.compile(r"\$\$\n?(.+?)\n?\$\$|\$([^$\n]+(?:\n[^$\n]+)?)\$", re.DOTALL)
SOLUTION = re.compile(
    r"^```\{solution-start\} (\S+)\n.*?^```\n(.*?)^```\{solution-end\}", re.MULTILINE | re.DOTALL
)
FRAMES = {"lstm": ((1,), (0, 2), (4,), (3,), (5,))}
"""For a diagram with steps, the lines of the chapter's block of six formulas that each step shows."""
SLIDES = range(9, 16)
"""How many a deck may have after its title."""
HEADING, POINT, LONGER = 9, 14, 4
"""Words at most; a translation may have some more."""


class Chapter:
    """What a deck shows of its chapter, in a language."""

    def __init__(self, name: str, language: str) -> None:
        self.page = Page(f"course/{name}", language=language)
        self.text = self.page.translated(text_of(DOCS / f"{self.page.name}.md"))
        self.parts: dict[str, dict[str, Block]] = {}
        for block in blocks(self.text):
            same = self.parts.setdefault(block.kind, {})
            label = options(block.lines)[0].get("label", block.argument)
            same[str(len(same) + 1) if block.kind in ("question", "code-cell") else label] = block
        for label, text in SOLUTION.findall(self.text):
            self.parts.setdefault("solution", {})[label] = Block("solution", label, [text])

    def part(self, kind: str, name: str) -> Block:
        """A block of the chapter by its name, number or label."""
        same = self.parts.get(kind, {})
        if name not in same:
            listed = " or ".join(same) or "none, since the chapter has none"
            raise ValueError(f"expected a {kind} of the chapter ({listed}), got {name!r}")
        return same[name]


def markdown(text: str, page: Page) -> str:
    """HTML of running text, with formulas left for KaTeX."""
    formulas: list[str] = []

    def kept(found: re.Match[str]) -> str:
        tag = "div" if found[1] else "span"
        formulas.append(f'<{tag} class="formula">{escape((found[1] or found[2]).strip())}</{tag}>')
        return f"\x02{len(formulas) - 1}\x03"

    text = FORMULA.sub(kept, page.translated(text))
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(inline(text, page))
    html = re.sub(r"<a [^>]*>(.*?)</a>", r"\1", html, flags=re.DOTALL)  # nobody clicks during a lecture
    return re.sub("\x02(\\d+)\x03", lambda found: formulas[int(found[1])], html)


def deck(name: str, language: str) -> Path:
    """The file of a deck."""
    return (DOCS / "course" if language == "en" else LOCALE / language) / "slides" / f"{name}.md"


def slides(name: str, language: str = "en") -> list[str]:
    """The sections of a chapter's deck; each mistake in it is one sentence of the error."""
    chapter = Chapter(name, language)
    path = deck(name, language)
    if not path.exists():
        raise ValueError(f"{relpath(path, DOCS.parent)}: expected a deck, got no file")
    first, *rest = re.split(r"^---\n", path.read_text("utf-8"), flags=re.MULTILINE)
    title, _, aim = first.strip().partition("\n")
    found = [f"<section><h1>{_line(title[2:], chapter.page)}</h1>{markdown(aim, chapter.page)}</section>"]
    wrong = []
    if not title.startswith("# ") or not aim:
        wrong.append("slide 0: expected '# Title' and a sentence below it")
    if len(rest) not in SLIDES:
        wrong.append(f"expected {SLIDES[0]} to {SLIDES[-1]} slides after the title, got {len(rest)}")
    for asked in chapter.parts.get("question", ()):
        if f"```{{question}} {asked}\n" not in "".join(rest):
            wrong.append(f"expected every question of the chapter, got none with the number {asked}")
    for number, text in enumerate(rest, 1):
        try:
            found.append(_slide(text, chapter))
        except ValueError as error:
            wrong.append(f"slide {number}, {text.strip().splitlines()[0]!r}: {error}")
    if wrong:
        raise ValueError("\n".join(f"{relpath(path, DOCS.parent)}: {one}" for one in wrong))
    return found


def _line(text: str, page: Page) -> str:
    return markdown(text, page).strip().removeprefix("<p>").removesuffix("</p>")


def _slide(text: str, chapter: Chapter) -> str:
    """A slide: its heading, its text and pictures, and its notes."""
    page, said = chapter.page, chapter.page.said
    text, *notes = re.split(r"^Note:", text, maxsplit=1, flags=re.MULTILINE)
    heading = re.match(r"\s*## (.+)\n", text)
    title, noted, shown = heading[1] if heading else "", bool(notes), ""
    for block in blocks(text[heading.end() :] if heading else text):
        if block.kind == "question":
            title, noted = title or said("A question"), True
            shown += _question(chapter.part("question", block.argument), page)
        elif block.kind == "exercise":
            title, noted = title or f"{said('Exercise')} {block.argument}", True
            asked = options(chapter.part("exercise", block.argument).lines)[1]
            shown += _box("text", markdown(asked, page))
            notes.append(options(chapter.part("solution", block.argument).lines)[1])
        elif block.kind == "live":
            given, inside = options(chapter.part("live", block.argument).lines)
            tried, _, more = inside.partition("\n\n")
            title = title or said(given["title"])
            shown += _box("text", markdown(tried, page))
            shown += _picture((DOCS / f"pictures/live/{block.argument}.png").read_bytes())
            notes.append(more)
        else:
            shown += _shown(block, chapter)
    if not title or not noted:
        raise ValueError("expected a heading '## …' and a note 'Note: …', got none")
    _most("words in the heading", _words(title), HEADING + LONGER * (page.language != "en"))
    told = markdown("\n\n".join(notes), page)
    body = _box("body", shown)
    return f'<section><h2>{_line(title, page)}</h2>{body}<aside class="notes">{told}</aside></section>'


def _shown(block: Block, chapter: Chapter) -> str:
    """HTML of a block that the deck itself has, or of a picture."""
    if block.kind == "text":
        return _written("\n".join(block.lines).strip(), chapter.page)
    if block.kind == "code":
        _most("lines of code", len(block.lines), 12)
        return _box("text", f"<pre>{escape(chr(10).join(block.lines))}</pre>")
    if block.kind == "diagram":
        return _box("picture", drawn(chapter.part("diagram", block.argument).argument))
    if block.kind == "frames" and block.argument in FRAMES:
        return _frames(block.argument, chapter)
    if block.kind == "figure" and (path := DOCS / "course" / block.argument).is_file():
        return _picture(path.read_bytes())
    if block.kind == "output" and chapter.part("code-cell", block.argument):
        return _output(int(block.argument), chapter)
    raise ValueError(
        "expected a block diagram, frames lstm, figure with the path of a picture, output, live, question or "
        f"exercise, got {block.kind} {block.argument}"
    )


def _most(what: str, got: int, most: int) -> None:
    if got > most:
        raise ValueError(f"expected at most {most} {what}, got {got}")


def _words(text: str) -> int:
    """How many words; a formula or code is one."""
    return len(re.findall(r"\S*\w\S*", re.sub(r"\$[^$]+\$|`[^`]+`", "x", text)))


def _written(text: str, page: Page) -> str:
    """Points that appear one after the other, formulas, a table, a quote."""
    points = re.findall(r"^- (.+(?:\n  .+)*)", text, re.MULTILINE)
    _most("points", len(points), 3)
    for point in points:
        most = POINT + LONGER * (page.language != "en")
        _most(f"words in the point {point!r}", _words(point), most)
    rows = re.findall(r"^\|(.+)\|$", FORMULA.sub("x", text), re.MULTILINE)
    _most("rows of a table", len(rows) - 2, 6)
    _most("columns of a table", max((row.count("|") + 1 for row in rows), default=0), 5)
    html = markdown(text, page).replace("<li>", '<li class="fragment">')
    return _box("text", html) if html else ""


def _box(kind: str, html: str) -> str:
    return f'<div class="{kind}">{html}</div>'


def _question(block: Block, page: Page) -> str:
    """A question with its options; the answer comes after the hands."""
    asked, choices, answer = "\n".join(block.lines).split("\n\n", 2)
    listed = markdown(choices, page).replace("<ul>", '<ol type="A">').replace("</ul>", "</ol>")
    told = markdown(f"**{block.argument}**. {page.translated(answer)}", page)
    return _box("text", f"{markdown(asked, page)}{listed}{_box('fragment', told)}")


def _picture(png: bytes) -> str:
    return _box("picture", f'<img alt="" src="data:image/png;base64,{b64encode(png).decode()}">')


def _output(number: int, chapter: Chapter) -> str:
    """What a code cell drew, or what it printed."""
    book = nbformat.read(DOCS / "_executed" / f"{chapter.page.name}.ipynb", as_version=4)
    drew, printed = "", ""
    for output in book.cells[number - 1].outputs:
        data = output.get("data", {})
        if "image/svg+xml" in data:
            drew += _box("picture", data["image/svg+xml"])
        elif "image/png" in data:
            drew += _picture(b64decode(data["image/png"]))
        else:
            printed += output.get("text") or data.get("text/plain", "")
    printed = re.sub(r"\x1b\[\d+m", "", printed).strip()
    if not drew and not printed:
        raise ValueError(f"expected a cell that draws or prints something, got cell {number}")
    return drew or _box("text", f"<pre>{escape(printed)}</pre>")


def _frames(name: str, chapter: Chapter) -> str:
    """A diagram drawn step by step, beside the formula of each step."""
    aligned = re.findall(r"\\begin\{aligned\}\n(.*?)\\end\{aligned\}", chapter.text, re.DOTALL)
    lines = next(rows for one in aligned if len(rows := re.split(r"\\\\\n", one.strip())) == 6)
    shown = ""
    for step, numbers in enumerate(FRAMES[name]):
        for number in numbers:
            formula, _, meaning = lines[number].replace("&&", "\0").partition("\0")
            meaning = re.sub(r"\\text\{(.*?)\}", r"\1", meaning).strip()
            formula = escape(formula.replace("&", "").strip())
            shown += (
                f'<div class="fragment" data-fragment-index="{step}"><div class="formula">{formula}</div>'
            )
            shown += f"{escape(meaning)}</div>"
    return f'<div class="frames"><div>{drawn(name)}</div><div>{shown}</div></div>'


def write(out: Path, language: str = "en") -> list[Path]:
    """Writes one file for each deck, and the list of them."""
    kit().WORDS.update(messages(catalog(language, "diagrams")))
    out.mkdir(parents=True, exist_ok=True)
    for path in (HERE / "reveal").iterdir():
        shutil.copy(path, out / path.name)
    shutil.copytree(DOCS / "_static" / "katex", out / "katex", dirs_exist_ok=True)
    katex = find_spec("sphinxcontrib.katex")
    assert katex and katex.origin
    shutil.copy(Path(katex.origin).parent / "katex.min.js", out)
    slide, index = (Template((HERE / f"{name}.html").read_text("utf-8")) for name in ("slides", "decks"))
    said = Page("course/index", language=language).said
    made, listed, wrong = list[Path](), "", list[str]()
    for name in CHAPTER.findall((DOCS / "course/index.md").read_text("utf-8")):
        try:
            sections = slides(name, language)
        except ValueError as error:
            wrong.append(str(error))
            continue
        title, aim = (re.sub("<.*?>", "", one).strip() for one in sections[0].split("</h1>"))
        made.append(out / f"{name}.html")
        notes, shown = said("Speaker notes"), "\n".join(sections)
        page = slide.substitute(title=title, language=language, notes=notes, sections=shown)
        made[-1].write_text(page, "utf-8")
        listed += f'<li><a href="{name}.html">{title}</a><br>{aim}</li>\n'
    page = index.substitute(title=said("Slides of the course"), language=language, decks=listed)
    (out / "index.html").write_text(page, "utf-8")
    if wrong:
        raise ValueError("\n".join(wrong))
    return made


if __name__ == "__main__":
    try:
        made = write(Path(sys.argv[1]), *sys.argv[2:])
    except ValueError as error:
        sys.exit(str(error))
    print(f"{sys.argv[1]}: {len(made)} chapters; open {sys.argv[1]}/index.html")
