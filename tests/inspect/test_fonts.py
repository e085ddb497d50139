"""Letters and colours of pictures: any script is whole or spelt out, scales are even to the eye."""

import json
import re
import warnings
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Text

from weft.figures import fonts
from weft.figures.alignment import heat_map
from weft.figures.axes import printable
from weft.figures.colours import (
    BARS,
    DARK_BARS,
    FAINT,
    GRID,
    INK,
    signed_colours,
    to_oklab,
    weight_colours,
)
from weft.figures.picture import png, svg
from weft.inspect.page.html import PageHead, document


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


def test_oklab_of_known_colours():
    # published by Ottosson: white is (1, 0, 0), red (0.628, 0.225, 0.126)
    np.testing.assert_allclose(to_oklab(np.array([1.0, 1, 1])), [1, 0, 0], atol=1e-3)
    np.testing.assert_allclose(to_oklab(np.array([1.0, 0, 0])), [0.628, 0.225, 0.126], atol=1e-3)


def test_steps_are_equal_and_lightness_always_falls():
    colours = weight_colours()
    lab = to_oklab(np.array([colours(number)[:3] for number in range(256)]))
    steps = np.linalg.norm(np.diff(lab, axis=0), axis=1)
    assert steps.max() / steps.min() < 1.05
    assert (np.diff(lab[:, 0]) < 0).all()


def test_signed_numbers_are_white_at_zero_and_darker_on_both_sides():
    colours = signed_colours()
    lab = to_oklab(np.array([colours(number)[:3] for number in range(257)]))
    np.testing.assert_allclose(lab[128], [1, 0, 0], atol=1e-3)
    assert (np.diff(lab[:129, 0]) > 0).all() and (np.diff(lab[128:, 0]) < 0).all()
    assert lab[0, 2] > 0.05 and lab[-1, 2] < -0.05  # yellow to red below zero, blue above


def test_a_page_has_the_colours_of_the_figures():
    page = document(PageHead("t", []), [])
    found = re.search(r"const palette = (.*);", page)
    assert found is not None
    light = json.loads(found.group(1))["light"]
    for kind, colours in (("one", weight_colours()), ("two", signed_colours())):
        at = np.linspace(0, 1, 101)
        scale = np.array(light[kind])
        places = at * (len(scale) - 1)
        drawn = np.stack([np.interp(places, np.arange(len(scale)), channel) for channel in scale.T], 1)
        assert np.abs(drawn - 255 * colours(at)[:, :3]).max() < 3  # of 255
    assert all(f"--c{number}:{colour};" in page for number, colour in enumerate(BARS))
    assert all(colour in page for colour in (INK, FAINT, GRID))


def test_nothing_is_white():
    np.testing.assert_allclose(weight_colours()(0.0)[:3], 1, atol=1e-10)


# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)  # of WCAG


@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize("colours", [BARS, DARK_BARS], ids=["light", "dark"])
def test_colour_blind_readers_can_tell_series_apart(colours, blindness):
    seen = [(linear(colour) @ np.transpose(BLINDNESS[blindness])).clip(0, 1) for colour in colours]
    seen = [np.where(one <= 0.0031308, one * 12.92, 1.055 * one ** (1 / 2.4) - 0.055) for one in seen]
    assert min(np.linalg.norm(to_oklab(a) - to_oklab(b)) for a, b in combinations(seen, 2)) > 0.09


def test_lines_and_words_stand_out_from_the_page():
    assert min(contrast(colour, "#ffffff") for colour in BARS) >= 3  # WCAG 1.4.11, graphics
    assert min(contrast(colour, "#12161d") for colour in DARK_BARS) >= 3
    assert contrast(FAINT, "#ffffff") >= 4.5  # WCAG 1.4.3, text
