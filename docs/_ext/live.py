"""The directive `{live} NAME`: a part of the page that computes in the reader's browser.

Its program is docs/_static/live/NAME.js. The first paragraph of the directive says what to try and is always
shown; the rest, below a picture of the part, is what a reader sees where scripts are off. A page without live
parts loads nothing of this. A page in another language has the words of its parts from the catalog `live`.
Read next: ../_static/live/live.js, which loads the parts.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from languages import PROGRAMS, catalog, messages, said
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from weft.export.page import joined

PICTURES = Path(__file__).resolve().parents[1] / "pictures" / "live"


@cache
def translations(language: str) -> dict[str, str]:
    """The texts of live parts in a language; none in English."""
    return messages(catalog(language, "live"))


class Live(nodes.General, nodes.Element):
    """The place of a live part: `name` of its program, `title` for screen readers."""


class LiveDirective(SphinxDirective):
    """A live part, its sentence of what to try, and what stands there without scripts."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"title": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if not (PROGRAMS / f"{name}.js").is_file():
            raise self.error(
                f"no live part is named {name!r}; its program would be docs/_static/live/{name}.js"
            )
        if not self.content or "title" not in self.options:
            raise self.error(f"the live part {name!r} needs :title: and a sentence of what to try")
        part = Live(name=name, title=titled(self))
        self.state.nested_parse(self.content, self.content_offset, part)
        hint, *rest = part.children
        hint["classes"].append("live-try")
        still = nodes.container("", *self.picture(name), *rest, classes=["live-still"])
        part.children = []
        part += [hint, still]
        return [part]

    def picture(self, name: str) -> list[nodes.Node]:
        """The part as it starts, once docs/live/stills.py drew it."""
        path = PICTURES / f"{name}.png"
        if not path.is_file():
            return []
        page = Path(self.env.doc2path(self.env.docname)).parent
        return [nodes.image(uri=os.path.relpath(path, page), alt=titled(self), loading="lazy")]


def titled(directive: SphinxDirective) -> str:
    """The title of a part in the language of the page."""
    title: str = directive.options["title"]
    return translations(directive.config.language).get(title, title)


def open_part(self: HTML5Translator, part: Live) -> None:
    """The start of a part in HTML."""
    attributes = {"data-live": part["name"], "aria-label": part["title"]}
    self.body.append(self.starttag(part, "section", CLASS="live", **attributes))
    self.body.append(f'<p class="live-title">{self.encode(part["title"])}</p>\n')


def close_part(self: HTML5Translator, part: Live) -> None:
    """Its end."""
    self.body.append("</section>\n")


def scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """A page with live parts loads the program that loads them, and has their words in its language."""
    parts = {part["name"] for part in doctree.findall(Live)} if doctree is not None else set()
    if not parts:
        return
    app.add_js_file("live/live.js", loading_method="defer")
    app.add_css_file("live/live.css")
    known = translations(app.config.language)
    words = {text: known[text] for name in sorted({"live", *parts}) for text in said(name) if text in known}
    if words:
        content = json.dumps(words, ensure_ascii=False).replace("<", "\\u003c")
        app.add_js_file(None, body=content, type="application/json", id="live-catalog")


def runtime(app: Sphinx, error: Exception | None) -> None:
    """The program of exported models, for the parts that have one."""
    if error is None and app.builder.format == "html":
        place = Path(app.outdir, "_static", "live", "weft.js")
        place.write_text(f"(() => {{ {joined('weft.js')} live.give('weft', modules); }})();\n", "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_node(Live, html=(open_part, close_part))
    app.add_directive("live", LiveDirective)
    app.connect("html-page-context", scripts)
    app.connect("build-finished", runtime)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
