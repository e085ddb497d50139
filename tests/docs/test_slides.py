"""Slides of the course: decks that somebody wrote, with pictures of the chapters, without a network."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.tools import tool
from tests.serve.browser import Browser, found

DOCS = Path(__file__).resolve().parents[2] / "docs"
DECKS = sorted((DOCS / "course/slides").glob("*.md"))
DECK = """# Title
What the class can do.
""" + "".join(
    f"---\n{slide}\n"
    for slide in (
        "## One\n- a\n\n$$\na < b\n$$\nNote: Why? $c$",
        "## Two\n```{frames} lstm\n```\nNote: N",
        "## Three\n```{output} 1\n```\nNote: N",
        "```{live} lstm\n```\nNote: N",
        "```{question} 1\n```",
        "```{exercise} lstm-bias\n```",
        "## Seven\n```python\nx = 1\n```\nNote: N",
        "## Eight\n| a | b |\n|---|---|\n| 1 | $|x|$ |\n\nNote: N",
        "## Nine\n> Wrong.\n\nNote: N",
    )
)
WRONG = {
    "## One": ("## one two three four five six seven eight nine ten", "9 words in the heading, got 10"),
    "- a\n": ("- a\n- b\n- c\n- d\n", "expected at most 3 points, got 4"),
    "- a": (f"- {'a ' * 15}", "got 15"),
    "Note: Why? $c$": ("", "slide 1, '## One': expected a heading '## …' and a note"),
    "{frames} lstm": ("{frames} gru", "got frames gru"),
    "{output} 1": ("{output} 10", "expected a code-cell of the chapter (1 or 2 or"),
    "## Three\n```{output} 1": ("## Three\n```{output} 4", "got cell 4"),
    "{live} lstm": (
        "{live} heads",
        "expected a live of the chapter (lstm or gates or opinions), got 'heads'",
    ),
    "{question} 1": ("{question} 2", "got none with the number 1"),
    "{exercise} lstm-bias": ("{exercise} gru-keep", "got 'gru-keep'"),
    "x = 1": ("x = 1\n" * 13, "expected at most 12 lines of code, got 14"),
    "| 1 | $|x|$ |": ("| 1 | 2 |\n" * 7, "rows of a table, got 7"),
    "## Nine": ("```{video} a\n```", "got video a"),
    "---\n## Nine\n> Wrong.\n\nNote: N\n": ("", "expected 9 to 15 slides after the title, got 8"),
    "# Title": ("Title", "expected '# Title' and a sentence below it"),
}

OUTSIDE = """Array.from({length: Reveal.getTotalSlides()}, (_, k) => {
  Reveal.slide(k, 0, 99);
  const slide = Reveal.getCurrentSlide(), arrows = document.querySelector(".controls .navigate-right");
  const places = kinds => [...slide.querySelectorAll(kinds)].filter(one => !one.closest("aside")).map(
    one => one.getBoundingClientRect());
  const inside = places("h1, p, li, td, pre, svg, img, .formula"), heading = places("h1, h2")[0];
  const top = Math.min(arrows.getBoundingClientRect().top, Reveal.getRevealElement().offsetHeight);
  return Math.max(...inside.map(one => one.bottom)) > top + 1 ||
    Math.min(...places(".text, .picture, .frames").map(one => one.top)) < heading.bottom - 1 ||
    Math.max(...inside.map(one => one.right)) > innerWidth ||
    parseInt(getComputedStyle(slide).fontSize) < 24 || slide.querySelector(".katex-error") ? k : 0;
}).filter(Boolean)"""
"""The slides that reach above, below or beside their place, or have tiny letters or a wrong formula."""


@pytest.fixture(scope="module")
def slides() -> Iterator[ModuleType]:
    for library in ("nbformat", "markdown_it", "sphinxcontrib.katex"):
        pytest.importorskip(library)
    found = tool("slides")
    yield found
    found.kit().WORDS.clear()  # of the last language that was written


@pytest.fixture
def deck(slides: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for a deck of the LSTM's chapter."""
    monkeypatch.setattr(slides, "deck", lambda *_: tmp_path / "lstm.md")
    return tmp_path / "lstm.md"


def structure(path: Path) -> list[object]:
    """What a translation keeps: blocks, formulas, code, and how many points and rows a slide has."""
    found = list[object]()
    for slide in path.read_text("utf-8").split("\n---\n"):
        shown = re.sub(r"\\text\{.*?\}", "", slide.partition("\nNote:")[0])
        code = re.findall(r"^```python\n(.*?)^```", shown, re.M | re.S)
        found.append(
            {
                "blocks": re.findall(r"^```(\{.+)", shown, re.M),
                "formulas": sorted(re.findall(r"\$\$\n.+?\n\$\$|\$[^$]+\$", shown, re.S)),
                "code": [re.sub(r" *#.*|\".*?\"", "", one) for one in code],
                "points": len(re.findall(r"^- ", shown, re.M)),
                "rows": len(re.findall(r"^\|", shown, re.M)),
                "quotes": len(re.findall(r"^> ", shown, re.M)) > 0,
            }
        )
    return found


def test_every_deck_holds_the_rules_and_loads_only_what_lies_beside_it(
    slides: ModuleType, tmp_path: Path
) -> None:
    made = slides.write(tmp_path)
    assert len(made) == len(DECKS) == 16
    for path in made:
        text = path.read_text("utf-8")
        for address in re.findall(r'(?:src|href)="([^"]+)"', text):
            assert address.startswith(("data:", "#")) or (tmp_path / address).is_file(), (path.name, address)
        assert "```" not in text and "{term}" not in text and "{{ " not in text, path.name
    assert (tmp_path / "LICENSE").read_text("utf-8").startswith("Copyright (C) 2011-2024 Hakim El Hattab")


def test_the_list_of_decks_and_the_notes_are_in_their_language(
    slides: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = slides.CHAPTER.pattern.replace(r"\d+", "[56]")
    monkeypatch.setattr(slides, "CHAPTER", re.compile(some, re.MULTILINE))
    slides.write(tmp_path, "hr")
    index = (tmp_path / "index.html").read_text("utf-8")
    assert '<html lang="hr">' in index and "<h1>Slajdovi tečaja</h1>" in index
    assert re.findall(r'<li><a href="(.+?)">(.+?)</a><br>Nakon ovog predavanja', index) == [
        ("lstm.html", "LSTM"),
        ("gru.html", "GRU, špijunke, spojena vrata i lagane ćelije"),
    ]
    assert 'speaker-notes::before { content: "Bilješke govornika"; }' in (tmp_path / "lstm.html").read_text(
        "utf-8"
    )


@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.stem)
def test_a_deck_is_written_and_not_cut_out_of_its_chapter(path: Path) -> None:
    chapter = " ".join((path.parents[1] / path.name).read_text("utf-8").split())
    said = re.sub(r"\*[^*\n]+\*", "", path.read_text("utf-8"))  # an example may stand in both
    points = [one for one in re.findall(r"^- (.+)", said, re.M) if len(one.split()) > 5]
    same = [one for one in points if one.rstrip(".") in chapter]
    assert len(same) <= max(1, len(points) / 10), same  # so may a definition
    for code in re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.M | re.S):
        compile(code, path.name, "exec")


@pytest.mark.parametrize("language", ["es", "hr", "pl", "ru"])
def test_decks_of_a_language_have_the_slides_blocks_and_formulas_of_the_english_ones(language: str) -> None:
    folder = DOCS / "_locale" / language / "slides"
    for english in DECKS:
        assert structure(folder / english.name) == structure(english), (language, english.stem)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "es", "hr", "pl", "ru"])
def test_nothing_lies_under_the_arrows_or_beside_the_slide(
    slides: ModuleType, language: str, tmp_path: Path
) -> None:
    if found() is None:
        pytest.skip("no Chromium on this machine: apt install chromium")
    chromium = Browser(tmp_path / "chromium")
    try:
        for path in slides.write(tmp_path / "slides", language):
            chromium.screen(1280, 720)
            chromium.open(path.as_uri())
            chromium.wait("window.Reveal && Reveal.isReady()")
            assert chromium.run(OUTSIDE) == [], path.name
    finally:
        chromium.close()


@pytest.mark.slow
@pytest.mark.parametrize("language", ["es", "hr", "pl", "ru"])
@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.stem)
def test_a_deck_of_a_language_says_nothing_in_english(slides: ModuleType, path: Path, language: str) -> None:
    def texts(spoken: str) -> set[str]:
        drawn = r"<(pre|code|em).*?</\1>|<svg.*?</svg>|<(\w+) class=\"formula\">.*?</\2>"
        said = re.sub(drawn, "", "".join(slides.slides(path.stem, spoken)), flags=re.DOTALL)
        return {one for one in re.split(r"<[^>]+>", said) if len(re.findall(r"[^\W\d]{3}", one)) > 3}

    english, own = texts("en"), texts(language)
    assert len(own) > 20 and not english & own


def test_the_lstm_is_drawn_in_six_frames_with_its_equations(slides: ModuleType) -> None:
    (frames,) = [one for one in slides.slides("lstm") if "frames" in one]
    drawn, _, equations = frames.partition("</svg>")
    assert re.findall(r'<g class="fragment" data-fragment-index="(\d)"', drawn) == list("01234")
    steps = re.findall(r'data-fragment-index="(\d)"><div class="formula">(.+?) =', equations)
    assert steps == [
        ("0", "f_t"), ("1", "i_t"), ("1", "\\tilde c_t"), ("2", "c_t"), ("3", "o_t"), ("4", "h_t")
    ]  # fmt: skip


def test_a_slide_has_points_by_key_formulas_pictures_and_notes(slides: ModuleType, deck: Path) -> None:
    deck.write_text(DECK, "utf-8")
    title, one, two, three, live, question, exercise, *_ = slides.slides("lstm", "hr")
    assert title == "<section><h1>Title</h1><p>What the class can do.</p>\n</section>"
    assert '<h2>One</h2><div class="body">' in one and '<li class="fragment">a</li>' in one
    assert '<div class="formula">a &lt; b</div>' in one
    assert '<aside class="notes"><p>Why? <span class="formula">c</span></p>' in one
    assert "ulazna vrata" in two and "<pre>outputs (2, 7, 5)" in three
    assert 'src="data:image/png' in live and "0.478" in live.partition("notes")[2]
    assert question.count("<li>") == 3 and '<div class="fragment"><p><strong>A</strong>. Čuvati (' in question
    assert "<code>left(bias, steps)</code>" in exercise and "0.167" in exercise.partition("notes")[2]


@pytest.mark.parametrize("right", WRONG)
def test_a_mistake_in_a_deck_is_one_sentence_with_file_and_slide(
    slides: ModuleType, deck: Path, right: str
) -> None:
    wrong, said = WRONG[right]
    deck.write_text(DECK.replace(right, wrong), "utf-8")
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        slides.slides("lstm")
    assert "lstm.md: " in str(error.value)
