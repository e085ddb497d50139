"""Slides of the course: made from the chapters, step by step, without a network."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.tools import tool

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def slides() -> ModuleType:
    for library in ("nbformat", "markdown_it", "sphinxcontrib.katex"):
        pytest.importorskip(library)
    return tool("slides")


def test_every_chapter_has_slides_that_load_only_what_lies_beside_them(
    slides: ModuleType, tmp_path: Path
) -> None:
    made = slides.write(tmp_path)
    assert len(made) == 16
    for path in made:
        text = path.read_text("utf-8")
        assert text.count("<section>") == text.count("</section>") > 5
        for address in re.findall(r'(?:src|href)="([^"]+)"', text):
            assert address.startswith(("data:", "#")) or (tmp_path / address).is_file(), (path.name, address)
        assert "```" not in text and '<aside class="notes">' in text
        assert text.count('<ol type="A">') == (ROOT / "docs/course" / f"{path.stem}.md").read_text().count(
            "{question}"
        )
        assert "{term}" not in text and "{{ " not in text
    assert (tmp_path / "LICENSE").read_text("utf-8").startswith("Copyright (C) 2011-2024 Hakim El Hattab")


@pytest.mark.parametrize("language", ["es", "hr", "pl", "ru"])
def test_slides_speak_a_language(slides: ModuleType, language: str) -> None:
    def texts(spoken: str) -> set[str]:
        whole = re.sub(
            r"<(pre|code).*?</\1>|<svg.*?</svg>", "", "".join(slides.slides("bptt", spoken)), flags=re.DOTALL
        )
        bare = re.sub(r'<(\w+) class="formula">.*?</\1>', "", whole, flags=re.DOTALL)
        return {one for one in re.split(r"<[^>]+>", bare) if len(re.findall(r"\w{3}", one)) > 4}

    english, own = texts("en"), texts(language)
    assert len(own) > 0.8 * len(english) > 30 and len(english & own) < 4  # code and numbers


def test_the_lstm_is_drawn_in_six_frames_with_its_equations(slides: ModuleType) -> None:
    (frames,) = [one for one in slides.slides("lstm") if "frames" in one]
    drawn, _, equations = frames.partition("</svg>")
    assert re.findall(r'<g class="fragment" data-fragment-index="(\d)"', drawn) == list("01234")
    steps = re.findall(r'data-fragment-index="(\d)"><div class="formula">(.+?) =', equations)
    assert steps == [
        ("0", "f_t"), ("1", "i_t"), ("1", "\\tilde c_t"), ("2", "c_t"), ("3", "o_t"), ("4", "h_t")
    ]  # fmt: skip


def test_a_paragraph_becomes_its_first_sentence_and_a_formula_stays(slides: ModuleType) -> None:
    page = slides.Page("course/lstm")
    found = slides._points("One thing is $a < b$. Another is not.\n\n$$\nx = y\n$$", page)
    assert [re.sub('</?(p|div class="fragment")>', "", one) for one in found] == [
        'One thing is <span class="formula">a &lt; b</span>.\n</div>'
        '<aside class="notes">Another is not.\n</aside>',
        '<div class="formula">x = y</div>\n</div>',
    ]


def test_a_list_stays_whole_wherever_it_continues(slides: ModuleType) -> None:
    (found,) = slides._points("3. **One** thing. And another.", slides.Page("course/lstm"))
    assert '<ol start="3">' in found and "And another." in found


def test_a_heading_begins_a_slide_and_a_colon_ends_no_sentence(slides: ModuleType) -> None:
    said = slides._points("A\n\nB: *b*, c. D\n\n### E\n\nF", slides.Page("course/lstm"))
    assert [
        [re.sub("(?s:<aside.*?</aside>)|<[^>]+>|\n", "", one) for one in part] for part in slides._parts(said)
    ] == [
        ["A", "B: b, c."],
        ["E", "F"],
    ]
