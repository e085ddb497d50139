"""Markdown as segments: paragraphs, headings and cells of tables. markdown-it-py reads it.

Everything else (code, the signs before and after a paragraph) stays as it is in the source. A
paragraph of several lines becomes one line. Read next: ../text/moving.py; html.py, the same for HTML.
"""

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from itertools import accumulate, islice
from typing import Any, NamedTuple

import regex

from weft.documents.html import Html
from weft.errors import library
from weft.text.moving import laid, with_tags
from weft.text.segments import Mark, Segment, Tags, WrittenSentence

_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\n(?:.*\n)*?(?:\1|\.\.\.)[ \t]*(?:\n|$)")
_NOTE = re.compile(r"\[\^[^\s\[\]]+\]:?")
_SPECIAL = regex.compile(r"[\\`*\[\]<]|(?<!\w)_|_(?!\w)|^(?:[#>]|[-+](?=\s))|(?<=^\d)[.)](?=\s)")
_TASK = re.compile(r"\[[ xX]\]\s+")
_FENCE = re.compile(
    r":{3,}.*|\[![A-Za-z]+\][-+]?.*|\$\$.*"  # of a container, of an alert, of a formula
    r"|\{\{[<%].*[>%]\}\}\s*|(import|export)\b.*\sfrom\s.*[\"'];?|export (default|const|function)\b.*"
)
"""A line that is not translated; Hugo's and MDX's have the second row."""
_NOTED = re.compile(r"(!!!|\?\?\?\+?)[ \t]+\w.*|===[!+]?[ \t]+\".*")
"""A line of MkDocs that is not translated, before text with an indent."""
_TERM = re.compile(r":[ \t]+(?=\S)")  # what the definition of a term begins with
_INLINE = re.compile(
    r"\{[#.%:][^{}\n]*\}"  # attributes
    r"|\$(?!\s)[^$\n]+(?<!\s)\$(?!\d)"  # formulas
    r"|\{\{[<%].*?[>%]\}\}"
    r"|:[a-z][a-z\d_+-]*:(?!\w)"  # emoji by name
)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


class _Part(NamedTuple):
    """A segment in the source, or the HTML between two paragraphs."""

    begin: int
    end: int
    segments: Sequence[Segment]
    cell: bool = False
    page: Html | None = None


class Markdown:
    """A text in Markdown (CommonMark, tables and ~~deletions~~).

    Each paragraph, heading and cell is a segment, or each part of it up to a hard line break.
    """

    def __init__(self, text: str) -> None:
        self._end = "\r\n" if "\r\n" in text else "\n"
        self._text = text.replace("\r\n", "\n")
        front = _FRONT.match(self._text)
        skipped = self._text[: front.end()].count("\n") if front else 0
        self._starts = [0, *accumulate(len(line) + 1 for line in self._text.split("\n"))][skipped:]
        self._parts: list[_Part] = []
        tables = 0
        with _uncollected():
            tokens = _parser().parse(self._text[self._starts[0] :])
        for token in tokens:
            tables += {"table_open": 1, "table_close": -1}.get(token.type, 0)
            if token.type == "inline":
                self._take(token, tables > 0)
            elif token.type == "html_block":
                self._take_page(token)
        self.segments = [segment for part in self._parts for segment in part.segments]

    def written(self, found: Sequence[WrittenSentence]) -> str:
        """The text with the translations of its segments."""
        whole, at, rest = [], 0, iter(found)
        for part in self._parts:
            held = list(islice(rest, len(part.segments)))
            if part.page is not None:
                there = part.page.written(held)
            else:
                there = with_tags(laid(part.segments[0], held[0]), _escaped).replace("\n", " ")
            whole += [self._text[at : part.begin], there.replace("|", "\\|") if part.cell else there]
            at = part.end
        return "".join([*whole, self._text[at:]]).replace("\n", self._end)

    def _take(self, token: Any, cell: bool) -> None:
        """Add the segments of a paragraph."""
        lines = token.content.split("\n")
        at = max(self._starts[token.map[0]], self._parts[-1].end if self._parts else 0)
        for nodes, count in _groups(token.children):
            held, lines = lines[:count], lines[count:]
            begin = None
            for number, line in enumerate(held, 1):
                bare = line.strip().replace("|", "\\|") if cell else line.strip()
                if number == count and lines:  # a hard line break, which stays
                    bare = bare.removesuffix("\\")
                place = self._text.index(bare, at)
                begin, at = place if begin is None else begin, place + len(bare)
            box = _TASK.match(nodes[0].content) if nodes and nodes[0].type == "text" else None
            if box and begin is not None:
                nodes[0].content = nodes[0].content[box.end() :]
                begin += box.end()
            texts = StringIO()
            marks = tuple(_marks(iter(nodes), texts))
            if begin is not None and any(sign.isalpha() for sign in texts.getvalue()):
                self._parts.append(_Part(begin, at, [Segment(texts.getvalue(), marks)], cell))

    def _take_page(self, token: Any) -> None:
        """Add the segments of HTML, unless its lines begin with something else, as in a quotation."""
        begin = self._starts[token.map[0]]
        if self._text.startswith(token.content, begin):
            page = Html(token.content)
            self._parts.append(_Part(begin, begin + len(token.content), page.segments, page=page))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection, which takes two thirds of the time of a table of 61,000 cells."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _parser() -> Any:
    module = library("markdown_it", "documents", "Markdown")
    parser = module.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    paragraph = library("markdown_it.rules_block", "documents", "Markdown").paragraph

    def defined(state: Any, line: int, end: int, silent: bool) -> bool:
        """A footnote or a definition: a paragraph, which ends another one."""
        place = state.bMarks[line] + state.tShift[line], state.eMarks[line]
        note = _NOTE.match(state.src, *place)
        found = (note and note[0].endswith(":")) or (line and _TERM.match(state.src, *place))
        return bool(found and (silent or paragraph(state, line, end, silent)))

    def fenced(state: Any, line: int, end: int, silent: bool) -> bool:
        """A line that stays as it is, and ends a paragraph."""
        found = _FENCE.fullmatch(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line])
        if found and not silent:
            last = line
            if found[0].startswith("$$") and not found[0].endswith("$$", 2):  # up to the end of the formula
                lines = range(line + 1, end)
                last = next((n for n in lines if "$$" in state.src[state.bMarks[n] : state.eMarks[n]]), line)
            state.line = last + 1
        return bool(found)

    def noted(state: Any, line: int, end: int, silent: bool) -> bool:
        """A line that stays as it is, and the text below it, whose indent is no code."""
        found = _NOTED.fullmatch(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line])
        if found and not silent:
            outside, inside = state.blkIndent, state.blkIndent + 4
            below = range(line + 1, end)
            last = next((n for n in below if not state.isEmpty(n) and state.sCount[n] < inside), end)
            state.blkIndent = inside
            state.md.block.tokenize(state, line + 1, last)
            state.blkIndent, state.line = outside, last
        return bool(found)

    def cited(state: Any, silent: bool) -> bool:
        """The sign of a footnote and the like, which stay as they are."""
        begin = state.pos == 0
        found = (begin and _TERM.match(state.src)) or _NOTE.match(state.src, state.pos, state.posMax)
        if not found and not (state.pos and state.src[state.pos - 1].isalnum()):
            found = _INLINE.match(state.src, state.pos, state.posMax)
        if not found:
            return False
        sign = found[0].removesuffix(":") if found[0].startswith("[") and not begin else found[0]
        if not silent:
            state.push("html_inline", "", 0).content = sign
        state.pos += len(sign)
        return True

    parser.block.ruler.before("reference", "footnote", defined, {"alt": ["paragraph", "reference"]})
    alt = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("reference", "fenced", fenced, alt)
    parser.block.ruler.before("reference", "noted", noted, alt)
    parser.inline.ruler.before("link", "footnote", cited)
    parser.normalizeLink = parser.normalizeLinkText = str  # addresses stay as they are
    parser.validateLink = bool
    return parser


def _groups(nodes: Sequence[Any]) -> list[tuple[list[Any], int]]:
    """The nodes between hard line breaks, and the number of their lines."""
    found: list[tuple[list[Any], int]] = [([], 1)]
    for node in nodes:
        held, count = found[-1]
        if node.type == "hardbreak" and not node.level:
            found.append(([], 1))
            continue
        held.append(node)
        breaks = node.content.count("\n") if node.type in ("code_inline", "html_inline") else 0
        found[-1] = held, count + breaks + (node.type in ("softbreak", "hardbreak"))
    return found


def _marks(nodes: Iterator[Any], texts: StringIO) -> Iterator[Mark]:
    """The marks up to the end of the element that surrounds these nodes; their texts are added."""
    for node in nodes:
        begin = texts.tell()
        if node.nesting == -1:
            return
        if node.type in ("text", "text_special"):
            texts.write(node.content)
        elif node.type in ("softbreak", "hardbreak"):
            texts.write(" ")
        elif node.type == "link_open" and node.markup == "autolink":
            inside = "".join(one.content for one in _inside(nodes))
            yield Mark(begin, begin, Tags(f"<{inside}>"))
        elif node.nesting == 1:
            inner = tuple(_marks(nodes, texts))
            tags = Tags(node.markup, node.markup)
            if node.type == "link_open":
                tags = Tags("[", f"]({_address(node, 'href')})")
            yield Mark(begin, texts.tell(), tags, inner)
        else:
            yield Mark(begin, begin, Tags(_point(node)))
            if _BREAK.fullmatch(node.content):
                texts.write(" ")


def _inside(nodes: Iterator[Any]) -> Iterator[Any]:
    for node in nodes:
        if node.nesting == -1:
            return
        yield node


def _point(node: Any) -> str:
    if node.type == "code_inline":
        pad = " " if node.content.startswith("`") or node.content.endswith("`") else ""
        return f"{node.markup}{pad}{node.content}{pad}{node.markup}"
    if node.type == "image":
        return f"![{node.content}]({_address(node, 'src')})"
    return str(node.content)


def _address(node: Any, name: str) -> str:
    """The address and the title of a link or picture."""
    address, title = node.attrGet(name), node.attrGet("title")
    if re.search(r"[\s()]", address) or not address:
        address = f"<{address}>"
    shown = title.replace("\\", "\\\\").replace('"', '\\"') if title else ""
    return f'{address} "{shown}"' if title else address


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
