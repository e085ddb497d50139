"""Recurrences at equal budget: the data is what it is said to be, and the page follows from the runs."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, whose neighbours are memory.py, texts.py and equal.py."""
    monkeypatch.syspath_prepend(FOLDER)
    import recurrences

    return recurrences


def test_word_ends_are_where_spaces_were(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "sentences", lambda language, split="train": ["to be or", " ", "not"])
    letters, ends = script.WordEnds().train[0]
    assert len(letters) == len("tobeor") and ends == [False, True, False, True, False, True]
    assert len(script.WordEnds().train) == 2  # an empty line is left out


def test_a_forecast_is_of_the_next_value(script: ModuleType) -> None:
    batch = script.Waves().draw(np.random.default_rng(3), 5)
    assert batch.source.shape == (5, script.STEPS, 1) and bool(batch.source_mask.all())
    assert batch.source[:, 1:, 0].equal(batch.target[:, :-1])


def test_the_page_prints_what_was_measured_and_says_what_was_not(script: ModuleType) -> None:
    same = {"seconds": 2.0, "budget": 9000, "machine": "m"}
    runs = [
        {"task": "tagging", "model": name, "seed": seed, "score": score + seed / 1000, **same}
        for name, score in (("lstm", 0.5), ("gru", 0.7), ("elman", 0.3))
        for seed in (1, 2, 3)
    ]
    runs += [{"task": "language", "model": "lstm", "seed": 1, "score": 2.0, **same}]  # one seed is too few
    told = script.page(runs)
    assert "| lstm | 3 | 0.5020" in told
    assert "| gru | 3 | **0.702" in told and "| elman | 3 | *0.302" in told
    assert "forecasting, MSE" in told.rpartition("Not measured")[2] and "| language" not in told
    assert "at most 9,000 parameters" in told and "--seconds 2" in told
