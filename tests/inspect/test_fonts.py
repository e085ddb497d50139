"""Letters of any script: covered by installed fonts, or spelt out with one warning; whole in an SVG."""

import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.text import Text

from weft.figures import fonts
from weft.figures.alignment import heat_map
from weft.figures.axes import printable
from weft.figures.picture import png, svg


@pytest.fixture
def only_base(monkeypatch):
    """A machine without any other font than matplotlib's own."""
    base = [entry for entry in fonts._candidates(fresh=False) if entry.name == fonts.BASE]
    monkeypatch.setattr(fonts, "_candidates", lambda *, fresh: [] if fresh else base)


def picture(source, target, title="t"):
    weights = np.full((len(target), len(source)), 1 / len(source))
    return heat_map(weights, source, target, title=title)


def test_latin_cyrillic_greek_arabic_and_hebrew_need_no_other_font(only_base):
    assert fonts.families("Grüße ▁Привет Ελλάδα العربية עברית </s> … ␣") == ([fonts.BASE], set())


def test_marks_without_a_shape_are_not_missing(only_base):
    assert fonts.families("a\u200d\u200f\ufe0f b\u00a0c") == ([fonts.BASE], set())


def test_missing_letters_are_spelt_with_one_warning_that_helps(only_base):
    figure = picture(["黑狗", "x"], ["dog", "黑"], "黑狗 / dog")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = png(figure)
    assert data.startswith(b"\x89PNG")
    (warning,) = caught
    said = str(warning.message)
    assert "2 of the picture's letters (狗, 黑; script: CJK)" in said
    assert "apt install fonts-noto-cjk" in said and ".svg" in said


def test_spelling_keeps_the_letters_that_are_there():
    assert fonts._spelt("a狗b黑狗", {"狗", "黑"}) == "a U+72D7 b U+9ED1 U+72D7"


def test_a_script_is_named_with_the_package_that_has_it(only_base):
    with pytest.warns(UserWarning, match=r"script: DEVANAGARI.*apt install fonts-noto-core"):
        png(picture(["हिन्दी"], ["Hindi"]))


def test_saving_leaves_the_figure_as_it_was(only_base):
    figure = picture(["黑"], ["x"])
    with pytest.warns(UserWarning, match="CJK"):
        png(figure)
    assert "黑" in {text.get_text() for text in figure.findobj(Text)}


def test_an_svg_keeps_every_letter_and_warns_of_nothing(only_base):
    words = ["黑狗", "हिन्दी", "العربية", "עברית", "Привет", "😀", "a<b>&c", "$5", "$6", "x_1^2"]
    root = ElementTree.fromstring(svg(picture(words, words[::-1], "黑狗 & <dog>")))
    shown = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for word in words:
        assert shown.count(word) == 2
    assert "黑狗 & <dog>" in shown
    assert "Noto Sans CJK SC" in root.get("font-family") and root.get("font-family").endswith("sans-serif")


def test_a_font_that_has_the_letters_is_used_after_the_base(monkeypatch):
    class Entry:
        def __init__(self, name, fname):
            self.name, self.fname = name, fname

    letters = {"base": set(map(ord, "dog")), "useless": set(map(ord, "xyz")), "asia": set(map(ord, "黑狗"))}
    entries = [Entry(fonts.BASE, "base"), Entry("Useless", "useless")]
    monkeypatch.setattr(fonts, "_letters", letters.get)
    monkeypatch.setattr(fonts, "_candidates", lambda *, fresh: [Entry("Asia", "asia")] if fresh else entries)
    assert fonts.families("dog 黑狗") == ([fonts.BASE, "Asia"], set())
    assert fonts.families("dog 黑狗é") == ([fonts.BASE, "Asia"], {"é"})
    assert fonts.families("god") == ([fonts.BASE], set())


@pytest.mark.parametrize(
    ("piece", "shown"), [("", "␣"), ("  ", "␣"), ("a\x0bb", "aU+000Bb"), ("\n", "U+000A"), ("▁né", "▁né")]
)
def test_what_cannot_be_seen_is_made_visible(piece, shown):
    assert printable(piece) == shown
