"""Pictures of texts, classes, scores by length and forecasts: all is there, and nonsense is refused."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from weft.errors import DataError, ShapeError
from weft.figures.alignment import confusion_map
from weft.figures.charts import quality_by_length
from weft.figures.coloured import coloured_text
from weft.figures.picture import png, svg
from weft.figures.records import ForecastRecord
from weft.figures.series import forecast_figure
from weft.metrics.bylength import LengthRow
from weft.metrics.metric import MetricScore


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


def rows(*values, name="BLEU", counts=(317, 1233, 46, 19), labels=("<=10", "11-20", "21-30", ">30")):
    scores = [
        None if value is None else MetricScore(name, value, "tok:13a|bs:9", 7, low=value - 1, high=value + 2)
        for value in values
    ]
    return [LengthRow(*row) for row in zip(labels, counts, scores, strict=True)]


def texts(figure):
    return [e.text for e in ElementTree.fromstring(svg(figure)).iter("{http://www.w3.org/2000/svg}text")]


def test_values_counts_and_signature_are_shown():
    figure = quality_by_length(rows(35.25, 30.5, 20.0, None), title="help en–es $test$")
    shown = texts(figure)
    wanted = ["≤ 10", "11–20", "> 30", "n = 317", "n = 1,233", "35.2", "30.5", "20.0", "BLEU"]
    assert not [text for text in [*wanted, "help en–es $test$"] if text not in shown]
    assert shown.count("tok:13a|bs:9") == 1
    assert png(figure).startswith(b"\x89PNG")


def test_bins_without_scores_are_refused():
    with pytest.raises(DataError, match="at least one score"):
        quality_by_length(rows(None, None, None, None), title="t")


def test_the_days_of_a_forecast_stand_equally_apart_over_the_end_of_a_month() -> None:
    hours = np.datetime64("2017-01-28T00:00:00") + np.arange(432) * np.timedelta64(1, "h")
    waves = np.sin(np.arange(432) / 4)
    one = ForecastRecord("wave", hours[:336], waves[:336], hours[336:], waves[336:], None, ())
    marks = forecast_figure(one).axes[0].get_xticks()
    assert len(marks) > 4 and np.allclose(np.diff(marks), np.diff(marks)[0])
