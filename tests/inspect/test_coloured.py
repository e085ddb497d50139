"""Coloured text and confusion: every word and class is there, and nonsense is refused."""

import re

import numpy as np
import pytest

from weft.errors import ShapeError
from weft.figures.alignment import confusion_map
from weft.figures.coloured import coloured_text
from weft.figures.picture import png, svg


def test_every_word_stands_in_the_picture_the_heaviest_darkest() -> None:
    words = [f"word{number}" for number in range(40)] + ["$x$", "Привет"]
    weights = np.linspace(0, 1, len(words)) / len(words) * 2
    weights[3] = 0.4
    text = svg(coloured_text(words, weights, title="good (97 %)", note="attention"))
    for word in [*words, "good (97 %)", "attention", "40 %"]:
        assert word in text
    fills = re.findall(r"fill: #([0-9a-f]{6})", text)
    assert min(fills, key=lambda fill: int(fill[:2], 16) + int(fill[2:4], 16) + int(fill[4:], 16)) == "081c4a"


def test_a_scale_may_be_given_and_an_empty_note_leaves_no_sign() -> None:
    words, weights = ["read", "written"], np.array([0.5, 0.25])
    own, given = (svg(coloured_text(words, weights, title="t", top=top)) for top in (None, 1.0))
    assert "081c4a" in own and "081c4a" not in given  # half of what there could be is not the darkest
    assert "␣" not in own


@pytest.mark.slow
def test_a_confusion_map_has_every_class_and_its_counts() -> None:
    matrix = np.array([[17, 0, 3], [0, 1234, 0], [0, 0, 0]])
    text = svg(confusion_map(matrix, ["a_1", "$b$", "в"], title="toy\nsecond line"))
    for shown in ("a_1", "$b$", "в", "17", "1,234", "true class", "toy", "second line"):
        assert shown in text
    assert "U+000A" not in text
    many = [f"c{number}" for number in range(53)]
    picture = confusion_map(np.eye(53, dtype=int), many, title="t")
    assert "13 rarer classes are not shown" in svg(picture)
    assert png(picture).startswith(b"\x89PNG")


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match="2 words and 1 weights"):
        coloured_text(["a", "b"], np.ones(1), title="t")
    with pytest.raises(ShapeError, match="at least 0"):
        coloured_text(["a"], np.array([-1.0]), title="t")
    with pytest.raises(ShapeError, match=r"confusion: .*got \[3, 3\]"):
        confusion_map(np.eye(3), ["a", "b"], title="t")
