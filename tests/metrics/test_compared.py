"""Any metric scores outputs beside one reference or several."""

import pytest

from weft.errors import DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.chrf import Chrf
from weft.metrics.scored import ComparedOutputs, of_lines, scored
from weft.metrics.wer import Wer

OUTPUTS = ["a b c", "d e", "f"]
REFERENCES = ["a b", "d e", "g h i"]


@pytest.mark.parametrize("metric", [Accuracy(), Wer(), Chrf()], ids=lambda one: one.key)
def test_with_one_reference_it_is_the_metric_itself(metric: Wer) -> None:
    lowest = {"empty": ["", "", ""]}
    ours = of_lines(OUTPUTS, REFERENCES, None, lowest).scored(metric)
    assert ours.json() == scored(metric, OUTPUTS, REFERENCES, baselines=lowest).json()
    assert of_lines(OUTPUTS, REFERENCES).value(metric) == ours.value


def test_each_line_is_compared_with_its_best_reference() -> None:
    several = ComparedOutputs(OUTPUTS, [["x y z w", "a b"], ["d e"], ["g h i", "f f", "g"]])
    # edits 1, 0, 1 against "a b", "d e" and "f f" or "g": of these the fewest per word are 1 of 2
    assert several.scored(Wer()).value == pytest.approx(100 * (1 + 0 + 1) / (2 + 2 + 2))
    assert "references:" in several.scored(Wer()).score.signature
    assert several.value(Accuracy()) == pytest.approx(1 / 3)


def test_lines_that_do_not_match_are_refused() -> None:
    with pytest.raises(DataError, match="got 2"):
        of_lines(["a", "b"], ["a"]).value(Wer())
    with pytest.raises(DataError, match="empty"):
        of_lines(["a"], [" "]).value(Wer())
