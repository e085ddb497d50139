"""The scale is even to the eye and survives a grey printer."""

import json
import re

import numpy as np

from weft.figures.colours import BARS, FAINT, GRID, INK, signed_colours, to_oklab, weight_colours
from weft.inspect.page.html import Head, document


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
    page = document(Head("t", []), [])
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
