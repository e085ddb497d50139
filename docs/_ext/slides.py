"""Slides of every chapter, from the chapter itself: python docs/_ext/slides.py build/slides [LANGUAGE]

Each chapter becomes one HTML file for reveal.js: its aim, its picture (step by step where the diagram has
steps), the formulas and sentences of each section, live parts, questions for the class, cells with what
they gave, common mistakes and exercises. What a slide leaves out is in its notes: ?showNotes=true shows them.
Nothing is fetched: reveal.js and KaTeX lie beside the files. Read next: notebooks.py, which reads the pages.
"""

import base64
import re
import shutil
import sys
from collections.abc import Iterator
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
from languages import catalog, messages
from markdown_it import MarkdownIt
from named import drawn, kit
from notebooks import CODE_CELL, DOCS, Page, blocks, inline, options, text_of

HERE = Path(__file__).parent
LEFT_OUT = {"Exercises", "Read on", "The same on the command line"}
FORMULA = re.compile(r"\$\$\n?(.+?)\n?\$\$|\$([^$\n]+(?:\n[^$\n]+)?)\$", re.DOTALL)
WHOLE = re.compile(r"\$\$|[|#-]|\d+\. ")
"""How a formula, a table, a heading and a list begin, which a slide shows whole."""
LINES = 18
"""A cell with more lines is no slide."""
AIM = "After this chapter "
POINTS = 5
"""Sentences and formulas on one slide."""

FRAMES = {"lstm": ((), (1,), (0, 2), (4,), (3,), (5,))}
"""For a diagram with steps, the lines of the chapter's block of six formulas that each step shows."""

STYLE = """
.reveal { font-family: system-ui, sans-serif; font-size: 30px; color: #1c2733; }
.reveal .slides section .fragment { transition: opacity 0.2s; }
.reveal .slides { text-align: left; } .reveal h1 { font-size: 2em; } .reveal h2 { font-size: 1.4em; }
.reveal section > svg, .reveal img { max-height: 432px; max-width: 100%; display: block; margin: 0 auto; }
.reveal pre { font-size: 0.6em; line-height: 1.35; background: #f4f6f8; padding: 0.6em; }
.reveal blockquote { border-left: 5px solid #d55e00; margin: 0; padding: 0 1em; }
.reveal table { border-collapse: collapse; font-size: 0.75em; }
.reveal td, .reveal th { padding: 0.2em 0.7em; }
.reveal .frames { display: grid; grid-template-columns: 3fr 2fr; gap: 1em; font-size: 0.8em; }
.reveal .frames svg { width: 100%; height: auto; }
"""

PAGE = """<!doctype html>
<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="reveal.css"><link rel="stylesheet" href="katex/katex.min.css">
<style>{style}</style></head><body><div class="reveal"><div class="slides">
{sections}
</div></div><script src="reveal.js"></script><script src="katex.min.js"></script><script>
const macros = {{"\\\\R": "\\\\mathbb{{R}}", "\\\\softmax": "\\\\operatorname{{softmax}}"}};
for (const place of document.querySelectorAll(".formula"))
  katex.render(place.textContent, place, {{displayMode: place.tagName === "DIV", throwOnError: false,
    macros}});
// A slide that is too large for the screen gets smaller letters.
function fit({{currentSlide: slide}}) {{
  for (let size = 29; size > 14 && (slide.scrollHeight > 720 || slide.scrollWidth > 1280); size--)
    slide.style.fontSize = `${{size}}px`;
}}
Reveal.on("ready", fit);
Reveal.on("slidechanged", fit);
Reveal.initialize({{hash: true, fragmentInURL: true, center: false, width: 1280, height: 720,
  scrollActivationWidth: null}});  // on a phone too: its scrolling view moves the letters of diagrams
</script></body></html>
"""


def markdown(text: str, page: Page) -> str:
    """HTML of running text, with formulas left for KaTeX."""
    formulas: list[str] = []

    def kept(found: re.Match[str]) -> str:
        tag = "div" if found[1] else "span"
        formulas.append(f'<{tag} class="formula">{escape((found[1] or found[2]).strip())}</{tag}>')
        return f"\x02{len(formulas) - 1}\x03"

    text = FORMULA.sub(kept, page.translated(text))
    html = MarkdownIt("commonmark").enable("table").render(inline(text, page))
    html = re.sub(r"<a [^>]*>(.*?)</a>", r"\1", html, flags=re.DOTALL)  # nobody clicks during a lecture
    return re.sub("\x02(\\d+)\x03", lambda found: formulas[int(found[1])], html)


def slides(name: str, language: str = "en") -> list[str]:
    """The sections of a page of docs/course, by its name there."""
    page = Page(f"course/{name}", language=language)
    text = page.translated(text_of(DOCS / f"{page.name}.md"))
    left_out = set(map(page.said, LEFT_OUT))
    kept = DOCS / "_executed" / f"{page.name}.ipynb"
    outputs = iter(nbformat.read(kept, as_version=4).cells if kept.exists() else [])
    first, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    title = re.search(r"^# (.+)$", first, re.MULTILINE)
    assert title
    formulas = re.findall(r"\\begin\{aligned\}\n(.*?)\\end\{aligned\}", text, re.DOTALL)
    aligned = (re.split(r"\\\\\n", one.strip()) for one in formulas)
    lines = next((one for one in aligned if len(one) == 6), [])
    found = [f"<section><h1>{_line(title[1], page)}</h1>{_aim(first, page)}</section>"]
    found += _of(first.replace(title[0], ""), "", page, outputs, lines, only=("diagram",))
    for heading, body in zip(parts[::2], parts[1::2], strict=True):
        if heading in left_out:
            for _ in CODE_CELL.findall(body):
                next(outputs, None)
        else:
            found += _of(body, heading, page, outputs, lines)
    return [*found, *_exercises(text, page)]


def _line(text: str, page: Page) -> str:
    return markdown(text, page).strip().removeprefix("<p>").removesuffix("</p>")


def _aim(text: str, page: Page) -> str:
    aim = next((said for key, said in page.words.items() if key.startswith(AIM)), AIM)
    return next((markdown(one, page) for one in text.split("\n\n") if one.startswith(aim)), "")


def _of(
    body: str, heading: str, page: Page, outputs: Iterator[Any], lines: list[str], only: tuple[str, ...] = ()
) -> list[str]:
    """Slides of a section: some of its sentences and formulas, one for each picture, cell and warning."""
    title = f"<h2>{_line(heading, page)}</h2>" if heading else ""
    said, found = [], []
    for block in blocks(body):
        if only and block.kind not in only:
            continue
        given, inside = options(block.lines)
        if block.kind == "text":
            said += _points("\n".join(block.lines), page)
        elif block.kind == "diagram":
            found.append(_diagram(block.argument, inside, page, lines))
        elif block.kind == "figure":
            found.append(f"<section>{title}{_picture((DOCS / page.name).parent / block.argument)}</section>")
        elif block.kind == "admonition":
            found.append(
                f"<section><h2>{escape(page.said(block.argument))}</h2>{markdown(inside, page)}</section>"
            )
        elif block.kind == "live":
            found.append(_live(block, page))
        elif block.kind == "question":
            found.append(_question(block.argument, inside, page))
        elif block.kind == "code-cell":
            hidden = "remove-input" in given.get("tags", "")
            found += _cell("" if hidden else inside, next(outputs, None), title)
    return [f"<section>{title}{''.join(part)}</section>" for part in _parts(said)] + found


def _parts(said: list[str]) -> list[list[str]]:
    """What stands on each slide; a heading begins one."""
    parts: list[list[str]] = []
    for one in said:
        if not parts or len(parts[-1]) == POINTS or "<h3>" in one:
            parts.append([])
        parts[-1].append(one)
    return parts


def _points(text: str, page: Page) -> list[str]:
    """The first sentence of each paragraph, the others as notes; formulas, lists and tables whole."""
    found = []
    for part in re.split(r"\n{2,}", text.strip()):
        rest = ""
        if part and not WHOLE.match(part):
            part, _, rest = re.sub(r"(?<=[.?])\s", "\0", part, count=1).partition("\0")
        if part:
            found.append(f'<div class="fragment">{markdown(part, page)}</div>{_notes(rest, page)}')
    return found


def _notes(text: str, page: Page) -> str:
    """What the lecturer says and the slide does not show."""
    return f'<aside class="notes">{markdown(text, page)}</aside>' if text else ""


def _live(block: Any, page: Page) -> str:
    """A live part: what to try on its page, its picture, and what it shows as notes."""
    given, inside = options(block.lines)
    tried, _, rest = inside.partition("\n\n")
    shown = _picture(DOCS / "pictures" / "live" / f"{block.argument}.png")
    title = escape(page.said(given["title"]))
    return f"<section><h2>{title}</h2>{markdown(tried, page)}{shown}{_notes(rest, page)}</section>"


def _question(right: str, inside: str, page: Page) -> str:
    """A question with its options; the answer comes after the hands."""
    asked, choices, answer = inside.split("\n\n", 2)
    listed = markdown(choices, page).replace("<ul>", '<ol type="A">').replace("</ul>", "</ol>")
    told = f'<div class="fragment">{markdown(f"**{right}**", page)}{markdown(answer, page)}</div>'
    return f"<section><h2>{page.said('A question')}</h2>{markdown(asked, page)}{listed}{told}</section>"


def _diagram(name: str, caption: str, page: Page, lines: list[str]) -> str:
    svg = drawn(name)
    if name not in FRAMES or not lines:
        return f"<section>{svg}{markdown(caption, page)}</section>"
    shown = []
    for step, numbers in enumerate(FRAMES[name][1:]):
        for number in numbers:
            formula, _, meaning = lines[number].partition("&&")
            meaning = re.sub(r"\\text\{(.*?)\}", r"\1", meaning).strip()
            formula = escape(formula.replace("&", "").strip())
            shown.append(
                f'<div class="fragment" data-fragment-index="{step}"><div class="formula">{formula}</div>'
                f"{escape(meaning)}</div>"
            )
    return f'<section><div class="frames"><div>{svg}</div><div>{"".join(shown)}</div></div></section>'


def _cell(code: str, cell: Any, title: str) -> list[str]:
    """A slide with the code and what it printed, and one for each picture that it drew."""
    printed, pictures = [], []
    for output in cell.outputs if cell else []:
        data = output.get("data", {})
        if "image/svg+xml" in data:
            pictures.append(data["image/svg+xml"])
        elif "image/png" in data:
            pictures.append(f'<img alt="" src="data:image/png;base64,{data["image/png"].strip()}">')
        else:
            printed.append(output.get("text") or data.get("text/plain", ""))
    text = re.sub(r"\x1b\[\d+m", "", "".join(printed)).strip()
    found = []
    if code and code.count("\n") < LINES and text.count("\n") < LINES:
        shown = f'<pre class="fragment">{escape(text)}</pre>' if text else ""
        found.append(f"<section>{title}<pre>{escape(code)}</pre>{shown}</section>")
    return found + [f"<section>{title}{one}</section>" for one in pictures]


def _picture(path: Path) -> str:
    text = path.read_text("utf-8") if path.suffix == ".svg" else ""
    encoded = base64.b64encode(path.read_bytes()).decode()
    return text[text.index("<svg") :] if text else f'<img alt="" src="data:image/png;base64,{encoded}">'


def _exercises(text: str, page: Page) -> list[str]:
    """A slide for each exercise; its solution is in the notes."""
    solved = {one.argument: options(one.lines)[1] for one in blocks(text) if one.kind == "solution"}
    found = []
    for block in blocks(text):
        if block.kind == "exercise":
            given, body = options(block.lines)
            label = given["label"]
            asked = f"<h2>{page.said('Exercise')} {label}</h2>{markdown(body, page)}"
            found.append(f"<section>{asked}{_notes(solved.get(label, ''), page)}</section>")
    return found


def write(out: Path, language: str = "en") -> list[Path]:
    """Writes one file for each chapter, and the list of them."""
    kit().WORDS.update(messages(catalog(language, "diagrams")))
    out.mkdir(parents=True, exist_ok=True)
    for path in (HERE / "reveal").iterdir():
        shutil.copy(path, out / path.name)
    shutil.copytree(DOCS / "_static" / "katex", out / "katex", dirs_exist_ok=True)
    katex = find_spec("sphinxcontrib.katex")
    assert katex and katex.origin
    shutil.copy(Path(katex.origin).parent / "katex.min.js", out)
    index = Page("course/index", language=language).translated((DOCS / "course/index.md").read_text("utf-8"))
    names = re.findall(r"^\| \d+ \| \[(.+?)\]\(([\w-]+)\.md\)", index, re.M)
    for title, name in names:
        sections = "\n".join(slides(name, language))
        page = PAGE.format(title=escape(title), language=language, style=STYLE, sections=sections)
        (out / f"{name}.html").write_text(page, "utf-8")
    listed = "".join(f'<li><a href="{name}.html">{escape(title)}</a></li>' for title, name in names)
    (out / "index.html").write_text(
        f"<!doctype html><title>Slides</title><h1>Slides</h1><ol>{listed}</ol>", "utf-8"
    )
    return [out / f"{name}.html" for _, name in names]


if __name__ == "__main__":
    made = write(Path(sys.argv[1]), *sys.argv[2:])
    print(f"{sys.argv[1]}: {len(made)} chapters; open {sys.argv[1]}/index.html")
