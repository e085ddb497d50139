"""Recurrences at equal budget: the data is as described, sizes are equal, the page follows from runs."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

FOLDER = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, whose neighbours are memory.py and equal.py."""
    monkeypatch.syspath_prepend(FOLDER)
    import recurrences

    return recurrences


@pytest.fixture
def tasks(script: ModuleType) -> ModuleType:
    import recurrence_tasks

    return recurrence_tasks


def test_word_ends_are_where_spaces_were(tasks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "sentences", lambda language, split="train": ["to be or", " ", "not"])
    made = tasks.WordEnds()
    letters, ends = made.train[0]
    assert len(letters) == len("tobeor") and ends == [0, 1, 0, 1, 0, 1]
    assert len(made.train) == 2  # an empty line is left out
    assert made.baseline() == 1.0  # no two letters have the same neighbours


def test_a_forecast_is_of_the_next_value(tasks: ModuleType) -> None:
    waves = tasks.Waves()
    batch = waves.draw(np.random.default_rng(3), 5)
    assert batch.source.shape == (5, tasks.STEPS, 1) and bool(batch.source_mask.all())
    assert batch.source[:, 1:, 0].equal(batch.target[:, :-1])
    assert 0.09 < waves.stronger() < waves.baseline()  # no forecast beats the noise


def test_a_transformer_that_forecasts_does_not_see_what_comes(tasks: ModuleType) -> None:
    encoder = tasks.encoder("transformer", 8, 16, both=False).eval()
    x = torch.randn(2, 7, tasks.EMBEDDING)
    later = torch.cat([x[:, :5], torch.randn(2, 2, tasks.EMBEDDING)], 1)
    states = [encoder(one, torch.ones(2, 7, dtype=torch.bool)).states for one in (x, later)]
    assert states[0][:, :5].equal(states[1][:, :5]) and not states[0][:, 5].equal(states[1][:, 5])


def test_spanish_agrees_and_turns_its_adjectives_round(tasks: ModuleType) -> None:
    chance = np.random.default_rng(5)
    drawn = [tasks.phrase(chance) for _ in range(20_000)]
    seen = {" ".join(english): " ".join(spanish) for english, spanish, _ in drawn}
    assert seen["these small red houses"] == "estas casas rojas pequeñas"
    assert (seen["the king"], seen["this old cow"]) == ("el rey", "esta vaca vieja")
    english, spanish = tasks.sentence(chance)
    assert len(english) == len(spanish)


def test_models_have_equal_parameters(
    script: ModuleType, tasks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "task_of", lambda name: tasks.Waves())
    for name in ("elman", "mamba", "transformer"):
        width, inner = script.sizes("forecasting", name)
        found = script.parameters(tasks.Waves().model(name, width, inner))
        assert 0.95 * script.BUDGET < found <= script.BUDGET, name
    script.sizes.cache_clear()


def test_the_page_prints_what_was_measured_and_says_what_was_not(script: ModuleType) -> None:
    same = {"updates": 200, "budget": 9000, "parameters": 8990, "cpu_seconds": 2.0, "machine": "m"}
    runs = [
        {"task": "tagging", "model": name, "seed": seed, "score": score + seed / 1000, **same}
        for name, score in (("lstm", 0.5), ("gru", 0.7), ("elman", 0.3))
        for seed in (1, 2, 3)
    ]
    runs += [{"task": "language", "model": "lstm", "seed": 1, "score": 2.0, **same}]  # one seed is too few
    runs += [{"task": "tagging", "model": "baseline", "score": 0.25, "machine": "m"}]
    told = script.page(runs)
    assert "| baseline | 0.25 |  |  |" in told
    assert "| lstm | 0.5020" in told
    assert "| gru | **0.702" in told and "| elman | *0.302" in told
    missing = told.rpartition("Not measured")[2]
    assert "language, translation, forecasting, parity, recall, copying: `elman`" in missing
    assert "tagging: `jordan`" in missing  # of tagging `elman`, `lstm` and `gru` are there


def test_lines_of_the_page_are_short_except_tables_and_code(script: ModuleType) -> None:
    code = "```console\n$ " + "run " * 40 + "\n```"
    text = f"# Head\n\n{'word ' * 50}\nmore\n\n{code}\n\n- {'first ' * 30}\n- second\n\n"
    found = script.wrapped(text)
    assert found.split() == text.split() and code in found and found.endswith("\n- second\n\n")
    assert max(len(line) for line in found.replace(code, "").split("\n")) <= 120
    assert "\n  first" in found  # an item goes on under its text
