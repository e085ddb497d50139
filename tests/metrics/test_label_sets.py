"""F1 of sets of labels: by hand, from matrices, and against scikit-learn where it is installed."""

import random

import numpy as np
import pytest

from weft.errors import ConfigError
from weft.metrics.f1 import by_class
from weft.metrics.label_sets import by_label, label_f1

LABELS = ["a", "b", "c", "d", "e"]


def drawn(rows: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["|".join(name for name in LABELS[:-1] if chance.random() < 0.4) for _ in range(rows)]


def matrix(lines: list[str]) -> np.ndarray:
    return np.array([[name in line.split("|") for name in LABELS] for line in lines])


def of_matrices(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Micro and macro F1 from precision and recall, a label that nobody has counting 0."""
    hits = (ours & theirs).sum()
    precision, recall = hits / ours.sum(), hits / theirs.sum()
    each = []
    for one, two in zip(ours.T, theirs.T, strict=True):
        right = (one & two).sum()
        each.append(0.0 if not right else 2 / (one.sum() / right + two.sum() / right))
    return 2 * precision * recall / (precision + recall), float(np.mean(each))


def test_it_is_the_formula_on_matrices() -> None:
    ours, theirs = drawn(53, 1), drawn(53, 2)
    micro, macro = of_matrices(matrix(ours), matrix(theirs))
    for mean, value in (("micro", micro), ("macro", macro)):
        found = label_f1(ours, theirs, separator="|", labels=LABELS, mean=mean)  # type: ignore[arg-type]
        assert found.value == pytest.approx(value, abs=1e-12)
        assert found.score.low is not None and found.score.low < value < found.score.high
    rows = by_label(ours, theirs, separator="|", labels=LABELS)
    assert np.mean([row.f1 for row in rows]) == pytest.approx(macro, abs=1e-12)
    assert [row.there for row in rows] == matrix(theirs).sum(0).tolist()
    assert [row.predicted for row in rows] == matrix(ours).sum(0).tolist()


def test_it_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn, for this comparison alone")
    ours, theirs = drawn(53, 1), drawn(53, 2)
    for mean in ("micro", "macro"):
        known = metrics.f1_score(matrix(theirs), matrix(ours), average=mean, zero_division=0)
        found = label_f1(ours, theirs, separator="|", labels=LABELS, mean=mean)  # type: ignore[arg-type]
        assert found.value == pytest.approx(known, abs=1e-12)


def test_one_label_each_is_the_f1_of_classes() -> None:
    chance = random.Random(3)
    ours, theirs = ([chance.choice(LABELS) for _ in range(41)] for _ in range(2))
    single = {row.label: row for row in by_class(ours, theirs)}
    assert {row.label: row for row in by_label(ours, theirs, separator="|", labels=LABELS)} == single


def test_no_label_and_unknown_ones_and_a_wrong_mean() -> None:
    row, other = by_label(["", "x|a", "a|a"], ["a", "", "a|y"], separator="|", labels=["a", "z"])
    assert (row.there, row.predicted, row.precision, row.f1) == (2, 2, 0.5, 0.5)
    assert other.f1 == 0.0
    with pytest.raises(ConfigError, match="mean"):
        label_f1(["a"], ["a"], separator="|", labels=["a"], mean="weighted")  # type: ignore[arg-type]
