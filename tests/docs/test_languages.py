"""Translations keep formulas, code and links; diagrams speak the language of their page."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from babel.messages.pofile import read_po
from markdown_it import MarkdownIt

from tests.docs.tools import tool

DOCS = Path(__file__).resolve().parents[2] / "docs"
LOCALE, CLAIMS = DOCS / "_locale", DOCS / "claims.md"
CATALOGS = sorted(path.relative_to(LOCALE).as_posix() for path in LOCALE.rglob("*.po"))
LANGUAGES = sorted({name.split("/")[0] for name in CATALOGS})
DECKS = sorted(path.relative_to(LOCALE).as_posix() for path in LOCALE.glob("*/slides/*.md"))
DIRECTIVE = re.compile(
    r"^```\{(live|question|exercise|solution)\}[^\n]*\n(?::\w+:[^\n]*\n)*(.*?)^```$", re.M | re.S
)
"""A directive whose text is translated, too."""
MATH, CODE = re.compile(r"\$[^$]+\$"), re.compile(r"(\{[\w:-]+\})?`([^`]+)`")


def marks(text: str) -> list[str]:
    """What a translation must keep, sorted."""
    kept = [re.sub(r"\\text\{[^}]*\}", "", formula) for formula in MATH.findall(text)]
    rest = MATH.sub("", text)
    for role, inside in CODE.findall(rest):
        kept.append(role or inside)  # the words of a role may be translated
    kept += re.findall(r"\]\(([^)]*)\)", rest)
    return sorted([*kept, "**" * rest.count("**")])


def said(name: str) -> list[str]:
    """The texts of a catalog or a deck, without formulas and code."""
    if name in DECKS:
        text = re.sub(r"^```.*?^```$", "", (LOCALE / name).read_text("utf-8"), flags=re.M | re.S)
        texts = [text.replace("$$", "$")]
    else:
        with (LOCALE / name).open("rb") as file:
            texts = [str(one.string) for one in read_po(file) if one.id]
    return [CODE.sub("", MATH.sub("", text)) for text in texts]


@pytest.mark.parametrize("name", CATALOGS)
def test_a_translation_keeps_formulas_code_and_links(name: str) -> None:
    with (LOCALE / name).open("rb") as file:
        found = [one for one in read_po(file, abort_invalid=True) if one.id]
    assert found
    assert (LOCALE / name).read_text("utf-8").count("\nmsgid ") == len(found) + 1, f"{name}: a text twice"
    for one in found:
        assert one.string, f"{name}: nothing for {one.id!r}"
        assert marks(one.string) == marks(one.id), f"{name}: {one.id!r}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_is_translated(language: str) -> None:
    languages = tool("languages")
    for path in sorted({*(DOCS / "course").rglob("*.md")} - {*(DOCS / "course/slides").iterdir()}):
        page = path.relative_to(DOCS).with_suffix("").as_posix()
        words = languages.messages(languages.catalog(language, page))
        prose = DIRECTIVE.sub(r"\n\2\n", path.read_text("utf-8"))
        prose = re.sub(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1$", "", prose, flags=re.M | re.S)
        blocks = re.split(r"\n\s*\n|\n(?: *- | *\d\. )", prose)
        paragraphs = [" ".join(block.split()) for block in blocks if re.match(r"\s*[A-Z\"\[]", block)]
        paragraphs += re.findall(r"^#+ ([^\n{]+)$", prose, re.M)
        missing = [block for block in paragraphs if block not in words]
        assert not missing, (language, page, missing)


@pytest.mark.parametrize("language", LANGUAGES)
def test_live_parts_are_translated(language: str) -> None:
    languages = tool("languages")
    words, holes = languages.messages(languages.catalog(language, "live")), re.compile(r"\{\d\}")
    assert languages.of_parts() == set(words)
    for text, translated in words.items():
        assert sorted(holes.findall(translated)) == sorted(holes.findall(text)), (language, text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_diagrams_are_translated(language: str) -> None:
    languages = tool("languages")
    assert languages.of_diagrams() == set(languages.messages(languages.catalog(language, "diagrams")))


def test_a_diagram_says_what_the_catalog_says() -> None:
    tool("languages")
    named = tool("named")
    kit = named.kit()
    before = named.drawn("lstm")
    try:
        kit.WORDS["forget"] = "zaboravi"
        assert ">zaboravi<" in named.drawn("lstm")
    finally:
        kit.WORDS.clear()
    assert named.drawn("lstm") == before
    assert ">forget<" in before


def test_what_has_no_words_needs_no_translation() -> None:
    words = tool("languages").UNTRANSLATED
    for text in ("$h_t$", "0.462", "`tag`, `language`", "$D$, $H \\times D$", "H_t = \\tanh(W x_t) \\\\ 1"):
        assert not words.sub("", text), text
    assert words.sub("", "state after step $t$")


@pytest.mark.parametrize("language", LANGUAGES)
def test_untranslated_pages_say_so_and_the_first_page_lists_the_others(language: str) -> None:
    languages = tool("languages")
    words = languages.messages(languages.catalog(language, "sphinx"))
    pages = {"course/lstm": (20, 1), "course/positions": (20, 15), "course/index": (9, 0)}
    titles = {page: SimpleNamespace(astext=lambda page=page: f"<{page}>") for page in pages}
    metadata = {
        page: {"messages": count, "missing": [""] * missing} for page, (count, missing) in pages.items()
    }
    includes = {"course/index": ["course/lstm", "course/positions"]}
    app = SimpleNamespace(
        config=SimpleNamespace(language=language, root_doc="course/index"),
        env=SimpleNamespace(metadata=metadata, titles=titles, toctree_includes=includes),
    )
    shown = {}
    for page in pages:
        context = {"body": "<h1>"}
        languages._told(app, page, "page.html", context, None)
        shown[page] = context["body"].removesuffix("<h1>")
    assert shown["course/lstm"] == ""
    assert words[languages.ENGLISH] in shown["course/positions"]
    assert '<a href="../course/lstm.html">&lt;course/lstm&gt;</a>' in shown["course/index"]
    assert "positions" not in shown["course/index"]
    metadata["course/positions"]["missing"] = []
    context = {"body": ""}
    languages._told(app, "course/index", "page.html", context, None)
    assert "<a" not in context["body"]
    assert words[languages.NUMBERS] in context["body"]


@pytest.mark.parametrize("name", CATALOGS + DECKS)
def test_the_words_are_those_of_the_lectures(name: str) -> None:
    wrong = yaml.safe_load((LOCALE / "words.yaml").read_text("utf-8"))[name.split("/")[0]]
    for text in said(name):
        outside = re.sub(r"\([^()]*\)", "", text)
        for right, pattern in wrong.items():
            found = re.search(pattern, outside, re.IGNORECASE)
            assert not found, f"{name}: {right}, not {found[0]}: {text}"


@pytest.mark.parametrize("name", [one for one in CATALOGS if "/course/" in one])
def test_a_translation_is_one_paragraph(name: str) -> None:
    """Sphinx shows the English text in place of a list, such as "1. start"."""
    with (LOCALE / name).open("rb") as file:
        for one in read_po(file):
            blocks = [token.type for token in MarkdownIt().parse(str(one.string)) if token.level == 0]
            assert not one.id or blocks == ["paragraph_open", "paragraph_close"], one.string


@pytest.mark.parametrize("name", [one for one in CATALOGS if "/course/" in one] + DECKS)
def test_numbers_in_text_have_a_decimal_point(name: str) -> None:
    for text in said(name):
        assert not re.search(r"\d,\d", text), (name, text)


def test_tables_inside_directives_are_translated() -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed: make docs")
    from docutils import nodes
    from docutils.frontend import get_default_settings
    from docutils.utils import new_document
    from sphinx.util.nodes import extract_messages

    document = new_document("page.md", get_default_settings())
    text = nodes.paragraph("without warm-up", "without warm-up")
    document += nodes.table("", nodes.row("", nodes.entry("", text)))
    assert [said for _, said in extract_messages(document)] == []
    tool("outside").Cells(document).apply()
    assert [said for _, said in extract_messages(document)] == ["without warm-up"]


def test_words_of_a_display_formula_are_translated() -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed: make docs")
    from docutils import nodes
    from docutils.frontend import get_default_settings
    from docutils.utils import new_document

    found = tool("languages").catalog("es", "course/lstm")
    english, spanish = next((one.id, one.string) for one in found if "\\text{input gate" in one.id)
    document = new_document("page.md", get_default_settings())
    document.settings.env = SimpleNamespace(config=SimpleNamespace(language="es"), docname="course/lstm")
    document += nodes.math_block(english, english)
    tool("outside").Formulas(document).apply()
    assert document[0].astext() == spanish != english


def test_pages_of_former_sources_leave_the_site(tmp_path: Path) -> None:
    for page in ("guides/gone", "guides/here", "_static/page"):
        (tmp_path / "site" / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / f"{page}.html").touch()
    (tmp_path / "docs" / "guides").mkdir(parents=True)
    (tmp_path / "docs" / "_static").mkdir()
    env = SimpleNamespace(found_docs={"guides/here"})
    builder = SimpleNamespace(name="html")
    app = SimpleNamespace(srcdir=tmp_path / "docs", outdir=tmp_path / "site", env=env, builder=builder)
    tool("languages")._tidy(app, None)
    left = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    assert left == {"guides/here.html", "_static/page.html"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_claims_to_vote_on_are_translated(language: str) -> None:
    languages = tool("languages")
    words = languages.messages(languages.catalog(language, "course/votes"))
    claims = re.findall(
        r"<summary><b>Claim \d+\.</b> (.+)</summary>\n\n\*\*(.+?)\*\*", CLAIMS.read_text("utf-8")
    )
    assert len(claims) == 14 and {claim for claim, _ in claims} <= set(words)
    told = {
        f"**{verdict}.** [What was measured](../claims.md#claim-{n})"
        for n, (_, verdict) in enumerate(claims, 1)
    }
    assert told <= set(words)
