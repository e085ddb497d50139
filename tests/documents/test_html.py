"""HTML: what is not translated stays character by character, and markup goes where its words went."""

import html
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.documents.capitals import translated
from weft.documents.html import Html, read_html_events
from weft.text.segments import Links, WrittenSentence, attended, proportional
from weft.text.sentences import DocumentPlan
from weft.words import spans as words

TAGS = """<b> </b> <i> </i> </a> <p> </p> <br> <br/> <pre> </pre> <x-y> </x-y> <img/>"""
PARTS = st.sampled_from(
    [
        *TAGS.split(),
        *("<i class='x y'>", '<a href="é?a&b">', "<hr />", "<!-- c -->", "<!DOCTYPE html>", "<img src=x>"),
        *("<script>if (a<b) {}</script>", "<svg viewBox='0 0 1 1'/>", "<span translate=no>Weft</span>"),
        *("<div class=notranslate>a <b>c</b></div>", " three ", " four five", "\n  ", "  ", "\t", "7"),
    ]
)
SOURCES = st.lists(PARTS, max_size=14).map("".join)


def same(page: Html) -> list[WrittenSentence]:
    """Each segment as its own translation."""
    found = []
    for one in page.segments:
        spans = words(one.text)
        found.append(WrittenSentence(one.text, Links(np.eye(len(spans)), spans, spans)))
    return found


@given(
    st.text(st.sampled_from("<>&/ab!-=' \"\n;#x?[]") | st.characters(codec="utf-8"), max_size=40) | SOURCES
)
def test_the_parts_of_a_source_joined_are_the_source(text: str) -> None:
    assert "".join(one.raw for one in read_html_events(text)) == text


@given(SOURCES)
def test_a_page_with_its_own_sentences_is_the_page(text: str) -> None:
    page = Html(text)
    # White space at the inner side of a tag moves to its outer side.
    assert "".join(page.written(same(page)).split()) == "".join(text.split())


@given(SOURCES)
def test_tags_and_their_order_of_nesting_survive_any_translation(text: str) -> None:
    page = Html(text)
    found = []
    for one in page.segments:
        there = "Uno dos, tres cuatro." if len(one.text) % 2 else "A"
        found.append(WrittenSentence(there, proportional(one.text, there)))
    raw = [one.raw for one in read_html_events(text) if one.kind != "text"]
    assert sorted(one.raw for one in read_html_events(page.written(found)) if one.kind != "text") == sorted(
        raw
    )


def moved(source: str, translation: str, pairs: str) -> str:
    """The page with one segment, translated; pairs of words as source-target."""
    page = Html(source)
    (segment,) = page.segments
    read_words, written_words = words(segment.text), words(translation)
    weights = np.zeros((len(written_words), len(read_words)))
    for pair in pairs.split():
        left, right = map(int, pair.split("-"))
        weights[right, left] = 1
    return page.written([WrittenSentence(translation, Links(weights, read_words, written_words))])


@pytest.mark.parametrize(
    ("source", "translation", "pairs", "wanted"),
    [
        (
            "Click the <b>Insert</b> tab.",
            "Pulse la ficha Insertar.",
            "0-0 1-1 2-3 3-2 4-4",
            "Pulse la ficha <b>Insertar</b>.",
        ),
        ("<i>a</i> <b>c</b>", "C A", "0-1 1-0", "<b>C</b> <i>A</i>"),
        (
            "the <a href=x>red <b>big</b> car</a>",
            "el coche grande rojo",
            "0-0 1-3 2-2 3-1",
            "el <a href=x>coche <b>grande</b> rojo</a>",
        ),
        ("Press <img src=k> now", "Ahora pulse", "0-1 1-0", "<img src=k> Ahora pulse"),
        ("one <sup>2</sup> two", "dos uno 2", "0-1 1-2 2-0", "dos uno <sup>2</sup>"),
        ("<b>Stop</b> it", "Halt", "0-0", "<b>Halt</b>"),
        ("a <b>b</b> <i>c</i>", "X", "0-0", "X"),
    ],
)
def test_markup_moves_to_the_words_that_its_words_became(
    source: str, translation: str, pairs: str, wanted: str
) -> None:
    found = moved(source, translation, pairs)
    if wanted == "X":  # more marks than words: nothing is lost
        assert re.sub("<[^>]*>", "", found) == "X" and all(
            tag in found for tag in ("<b>", "</b>", "<i>", "</i>")
        )
    else:
        assert found == wanted


def test_the_white_space_of_a_page_survives() -> None:
    text = "<!DOCTYPE html>\n<ul>\n  <li> one  <b>two</b>,\n    three </li>\r\n\t<li>x</li>\n</ul>\n"
    page = Html(text)
    assert page.written(same(page)) == text


def test_what_is_not_to_be_translated_is_no_segment() -> None:
    page = Html(
        "<title>Name</title><style>p {}</style><p>See <code>weft train</code> "
        "<span class='x notranslate'>Weft</span> and <!-- note -->more.</p>"
        "<div translate='no'><p>Left</p></div>"
        "<pre>one\n two</pre><p>1 %</p>"
    )
    assert [one.text for one in page.segments] == ["Name", "See   and more.", "one", " two"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("<p>a <b>file</b><sup>1</sup>.</p>", "<p>A <b>FILE</b><sup>1</sup>.</p>"),
        ("<p>a file<sup><a href='#1'>[1]</a></sup> b</p>", "<p>A FILE<sup><a href='#1'>[1]</a></sup> B</p>"),
        ("<nav><a>home</a><a>about us</a></nav>", "<nav><a>HOME</a><a>ABOUT US</a></nav>"),
        ("<b><button>go</button><label>a</label></b>", "<b><button>GO</button><label>A</label></b>"),
    ],
)
def test_what_no_space_separates_stays_with_its_own_tags(text: str, wanted: str) -> None:
    assert translated(text, "a.html") == wanted


def test_characters_are_escaped_once() -> None:
    page = Html("<p>a &lt; b &amp;amp; &#233;&nbsp;&eacute;</p>")
    assert [one.text for one in page.segments] == ["a < b &amp; é\u00a0é"]
    assert html.unescape(page.written(same(page))) == "<p>a < b &amp; é\u00a0é</p>"


def test_sentences_of_a_paragraph_share_its_markup() -> None:
    pytest.importorskip("sentencex", reason="sentencex is not installed: pip install -e .[documents]")
    page = Html("<p> <b>One is. Two</b> are.\n</p>")
    plan = DocumentPlan(page.segments, "en", "es")
    assert [one.text for one in plan.sentences] == ["One is.", "Two are."] and plan.sentences[0].linked
    there = ["Uno es.", "Son dos."]
    swapped = Links(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1.0]]), words("Two are."), words(there[1]))
    found = plan.joined(
        [WrittenSentence(there[0], proportional("One is.", there[0])), WrittenSentence(there[1], swapped)]
    )
    assert page.written(found) in (
        "<p> <b>Uno es. Son dos</b>.\n</p>",
        "<p> <b>Uno es.</b> Son dos.\n</p>",
    )


def test_pieces_are_found_in_the_text_that_they_spell() -> None:
    source, target = "the Insert tab", "la ficha Insertar"
    pieces = ["▁The", "▁Ins", "ert", "▁tab"], ["▁la", "▁<unk>", "▁Inser", "tar"]
    weights = np.array(
        [[0.9, 0.1, 0, 0], [0, 0, 0.2, 0.8], [0, 0.5, 0.5, 0], [0, 0.2, 0.6, 0.2], [1, 0, 0, 0]]
    )
    found = attended(source, target, pieces, weights)
    assert found.weights.argmax(1).tolist() == [0, 2, 1]
    assert np.allclose(found.weights.sum(1), 1)


@pytest.mark.parametrize("unit", ["<sup>", "<sup>1", "a<sub>1<b></b>", "<sup>1</sup>", "<kbd>", "<a>b</a>"])
def test_the_time_to_read_a_page_grows_with_it(unit: str) -> None:
    def seconds(size: int) -> float:
        begun = time.process_time()
        Html(unit * (size // len(unit)))
        return time.process_time() - begun

    assert seconds(40_000) < 16 * seconds(5_000) + 0.1  # 64 times, if it were quadratic


def test_attributes_that_people_read_are_translated() -> None:
    page = (
        '<meta name="description" content="a &quot;b&quot;"><meta name=x content="a"><img src=a alt=\'b\'>'
        '<p title="c" id="d">e <input placeholder="f" value="g"></p><p translate="no" title="h">i</p>'
    )
    wanted = (
        '<meta name="description" content="A &quot;B&quot;"><meta name=x content="a"><img src=a alt=\'B\'>'
        '<p title="C" id="d">E <input placeholder="F" value="g"></p><p translate="no" title="h">i</p>'
    )
    assert translated(page, "a.html") == wanted
