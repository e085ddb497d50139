"""The course in other languages: one site for each folder of docs/_locale, in build/site/LANGUAGE.

    python docs/_ext/languages.py site build/site      build them beside the English site
    python docs/_ext/languages.py words build/gettext  what diagrams and live parts say, for translators

A page shows English where a translation is missing. What is missing and what is stale (translated from a
sentence that the page no longer has) is printed for each language. Read next: ../diagrams/kit.py.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from gettext import NullTranslations
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
LOCALE = DOCS / "_locale"
PROGRAMS = DOCS / "_static" / "live"
NAMES = {"en": "English", "es": "Español", "hr": "Hrvatski", "pl": "Polski", "ru": "Русский"}
BUILD = DOCS.parent / "build" / "languages"
SAID = re.compile(r"\bsay\(\s*'([^']+)'")
"""A text that the program of a live part shows."""

ENGLISH = "The text of this page has not been translated yet; it is in English."
LISTED = "In this language: {0}. The text of the other pages is in English."
NUMBERS = (
    "Numbers in text, formulas and code have a decimal point (0.5), as in Python; live parts have the comma "
    "of this language (0,5)."
)

TITLE = re.compile(r"^```\{(?:live|vote)\}[^\n]*\n:title: ([^\n]+)$", re.MULTILINE)
UNTRANSLATED = re.compile(r"\$[^$]+\$|`[^`]+`|\\text\{[^}]*\}|[^\W\d_]*[\\_&=^]\S*|\W|\d")
"""Formulas, code and numbers; a text that has nothing else needs no translation."""


def translated() -> list[str]:
    """The languages that docs/_locale has."""
    return sorted(path.name for path in LOCALE.iterdir() if path.is_dir()) if LOCALE.is_dir() else []


def catalog(language: str, name: str) -> Catalog:
    """A catalog of a language, empty where there is none; a broken one is an error."""
    path = LOCALE / language / "LC_MESSAGES" / f"{name}.po"
    if not path.exists():
        return Catalog()
    with path.open("rb") as file:
        return read_po(file, abort_invalid=True)


def messages(book: Catalog) -> dict[str, str]:
    """What is translated, without what was marked as uncertain."""
    return {one.id: one.string for one in book if one.id and one.string and not one.fuzzy}


class Words(NullTranslations):
    """Translations of an extension, from ours: its own have the wrong case after "solution to"."""

    def __init__(self, words: dict[str, str]) -> None:
        super().__init__()
        self._words = words

    def gettext(self, message: str) -> str:
        """Called by Sphinx."""
        return self._words.get(message, message)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Called by Sphinx."""
    from outside import Anchors, Cells, Formulas, OutsideLinks, Progress

    app.connect("config-inited", _words)
    app.connect("html-page-context", _switch)
    app.connect("html-page-context", _told)
    app.connect("build-finished", _report)
    app.connect("build-finished", _tidy)
    app.add_transform(Cells)
    app.add_transform(Progress)
    app.add_transform(Formulas)
    app.add_transform(Anchors)
    app.add_post_transform(OutsideLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _words(app: "Sphinx", config: Any) -> None:
    from named import kit
    from sphinx.locale import translators

    kit().WORDS.update(messages(catalog(config.language, "diagrams")))
    if config.language != "en":
        translators["general", "exercise"] = Words(messages(catalog(config.language, "sphinx")))


def _switch(app: "Sphinx", page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The addresses of a page in the languages that have it, from this page."""
    here = app.config.language
    others = [language for language in ("en", *translated()) if page.startswith("course/")]
    up = "../" * (page.count("/") + (here != "en"))
    context["languages"] = [
        (NAMES[one], one, f"{up}{'' if one == 'en' else one + '/'}{page}.html")
        for one in others
        if one != here
    ]


def whole(facts: Mapping[str, Any]) -> bool:
    """Whether a page is in the language, by what outside.Progress noted: a few texts may be missing."""
    return len(facts.get("missing", ())) <= 0.1 * int(facts.get("messages", 0))


def _told(app: "Sphinx", page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """A banner on pages that are in English, and on the first page a list of those that are not."""
    facts, words = app.env.metadata, messages(catalog(app.config.language, "sphinx"))
    if app.config.language == "en" or page not in facts:
        return
    if page == app.config.root_doc:
        up, text = "../" * page.count("/"), words[NUMBERS]
        every = app.env.toctree_includes[page]
        ready = [one for one in every if whole(facts[one])]
        if len(ready) < len(every):
            links = [f'<a href="{up}{one}.html">{escape(app.env.titles[one].astext())}</a>' for one in ready]
            text = f"{words[LISTED].format('; '.join(links))} {text}"
    elif not whole(facts[page]):
        text = words[ENGLISH]
    else:
        return
    context["body"] = f'<div class="admonition note"><p>{text}</p></div>\n{context["body"]}'


def _report(app: "Sphinx", error: Exception | None) -> None:
    """One line for a language, and a file with every message that is missing or stale."""
    if error is not None or app.config.language == "en":
        return
    lines, counts = [], dict.fromkeys(("all", "missing", "stale"), 0)
    for page, facts in sorted(app.env.metadata.items()):
        counts["all"] += facts.get("messages", 0)
        for kind in ("missing", "stale"):
            counts[kind] += len(facts.get(kind, ()))
            lines += [f"{kind}\t{page}\t{text}" for text in facts.get(kind, ())]
    listed = BUILD / f"{app.config.language}.txt"
    listed.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    ready, every, stale = counts["all"] - counts["missing"], counts["all"], counts["stale"]
    print(
        f"{NAMES[app.config.language]}: {ready} of {every} texts are translated, {stale} are stale; ", end=""
    )
    print(f"{listed.relative_to(DOCS.parent)} lists what is missing and what is stale")


def _tidy(app: "Sphinx", error: Exception | None) -> None:
    """Removes the pages of former sources, which an earlier build left: their links lead nowhere."""
    if error is not None or app.builder.name != "html":
        return
    folders = [path for path in app.srcdir.iterdir() if path.is_dir() and not path.name.startswith("_")]
    for folder in folders:
        for page in Path(app.outdir, folder.name).rglob("*.html"):
            if page.relative_to(app.outdir).with_suffix("").as_posix() not in app.env.found_docs:
                page.unlink()


def build(site: Path) -> None:
    """Builds every language and puts it beside the English pages; stops at the first failure."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for language in translated():
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html"]
        command += ["-t", "course", "-D", f"language={language}", "-d", str(BUILD / f"{language}-doctrees")]
        command += [str(DOCS), str(BUILD / language / "site")]
        subprocess.run(command, check=True)
        shutil.rmtree(site / language, ignore_errors=True)
        shutil.copytree(BUILD / language / "site", site / language)


def words(folder: Path) -> None:
    """Writes diagrams.pot and live.pot: every text of the diagrams and of the live parts."""
    for name, texts in (("diagrams", of_diagrams()), ("live", of_parts())):
        found = Catalog(project="Weft", fuzzy=False)
        for text in texts:
            found.add(text)
        with (folder / f"{name}.pot").open("wb") as file:
            write_po(file, found, sort_output=True)


def of_diagrams() -> set[str]:
    """Every text of the diagrams."""
    from named import every, kit

    class Recorded(dict[str, str]):
        def get(self, text: str, default: str = "") -> str:  # type: ignore[override]
            found.add(text)
            return default

    found: set[str] = set()
    known, kit().WORDS = kit().WORDS, Recorded()
    every()
    kit().WORDS = known
    return found


def said(name: str) -> list[str]:
    """The texts of a live part's program."""
    return SAID.findall((PROGRAMS / f"{name}.js").read_text("utf-8"))


def of_parts() -> set[str]:
    """Every text that live parts and votes show: of their programs, and their titles on the pages."""
    texts = {text for path in PROGRAMS.glob("*.js") for text in said(path.stem)}
    for page in (DOCS / "course").rglob("*.md"):
        texts.update(TITLE.findall(page.read_text("utf-8")))
    return texts


if __name__ == "__main__":
    {"site": build, "words": words}[sys.argv[1]](Path(sys.argv[2]))
