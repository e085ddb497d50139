"""Recurrences at equal budget, and what they remember: data, sizes, resuming, verdicts, pages."""

import json
import sys
from functools import partial
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


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, whose neighbours are memory_page.py and study.py."""
    monkeypatch.syspath_prepend(FOLDER)
    import memory

    return memory


@pytest.mark.slow
def test_a_second_call_measures_only_what_is_missing_and_the_page_says_what_was_found(
    memory: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import memory_page

    file = tmp_path / "runs.jsonl"
    for name, place in (("PAGE", tmp_path / "memory.md"), ("PICTURE", tmp_path / "scores")):
        monkeypatch.setattr(memory_page, name, place)
    settings = ["--seconds", "0.2", "--parameters", "3000", "--runs", str(file)]
    asked = [*settings, "--problems", "parity", "--seeds", "1", "--models", "gru"]
    for more in ((), (), ("delta",)):
        monkeypatch.setattr(sys, "argv", ["memory.py", *asked, *more])
        memory.main()
    runs = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [one["model"] for one in runs] == ["gru", "delta"]
    assert all(one["parameters"] <= 3000 and one["updates"] > 0 and 0 < one["test"] < 1 for one in runs)
    monkeypatch.setattr(sys, "argv", ["memory.py", *settings, "--write"])
    memory.main()
    said = (tmp_path / "memory.md").read_text("utf-8")
    assert "parity with 2 models and 1 seed" in said
    assert "| gru | yes | undecided |" in said and (tmp_path / "scores.png").stat().st_size > 1000


@pytest.mark.slow
def test_models_use_the_budget_and_states_are_counted(memory: ModuleType) -> None:
    data = memory.PROBLEMS["recall"]
    for name in memory.CELLS:
        width = memory.width_for(partial(memory.model, name, data), 20_000)
        assert memory.parameters(memory.model(name, data, width)) <= 20_000
        assert memory.parameters(memory.model(name, data, width + 4)) > 20_000
    lstm, delta = (memory.model(name, data, 8) for name in ("lstm", "delta"))
    assert memory.state_size(lstm) == 2 * 8 + 3 * 8  # h and c; inputs of the convolution
    assert memory.state_size(delta) == 2 * 4 * 4 + 3 * 3 * 8  # two matrices; convolution of q, k and v
    assert memory.state_size(memory.model("transformer", data, 8)) is None


def test_a_verdict_follows_from_the_interval_beyond_the_length_of_training(memory: ModuleType) -> None:
    from memory_page import verdict

    solved, missed, wide = np.array([0.99, 1.0, 1.0]), np.array([0.5, 0.6, 0.55]), np.array([0.5, 1.0, 0.9])
    assert [verdict(solved, one) for one in (True, False, None)] == ["agrees", "contradicted", "solved"]
    assert [verdict(missed, one) for one in (True, False, None)] == ["not learnt", "agrees", "not solved"]
    assert {verdict(one, True) for one in (wide, solved[:2])} == {"undecided"} and verdict(
        solved[:0], True
    ) == ""


def test_what_negative_eigenvalues_add_is_paired_by_seed(memory: ModuleType) -> None:
    from memory_page import by_sign

    scores = {"delta": (0.5, 0.6, 0.5), "delta, negative": (0.9, 1.0, 1.0), "gated_delta": (0.5, 0.5, 0.5)}
    runs = [
        {"problem": "parity", "model": name, "seed": seed, "test": score}
        for name, three in scores.items()
        for seed, score in enumerate(three)
    ]
    said = by_sign(runs, ["parity", "three cups"])
    mean, half = 1.3 / 3, 4.303 * np.std([0.4, 0.4, 0.5], ddof=1) / 3**0.5
    assert f"- `delta`, parity: {mean:.2f} ± {half:.2f}, **agrees**." in said
    assert "gated_delta" not in said and by_sign(runs[:5], ["parity"]) == ""


def test_what_gates_that_read_the_input_add_is_the_difference_of_means_by_seed(memory: ModuleType) -> None:
    from memory_page import by_selection

    scores = {
        "lru": (0.3, 0.4, 0.3),
        "s4d": (0.5, 0.4, 0.3),
        "gru": (0.9, 1.0, 1.0),
        "mamba": (0.7, 1.0, 0.8),
    }
    runs = [
        {"problem": "induction", "model": name, "seed": seed, "valid": score, "state": 7}
        for name, three in (scores | {"transformer": (0.0, 0.0, 0.0)}).items()
        for seed, score in enumerate(three)
    ]
    for one in runs[-3:]:  # has no state of a fixed size
        one["state"] = None
    mean, half = 1.6 / 3, 4.303 * np.std([0.4, 0.6, 0.6], ddof=1) / 3**0.5
    assert f"- induction: {mean:.2f} ± {half:.2f}, **agrees**." in by_selection(runs, memory.CELLS)
    assert by_selection([one for one in runs if one["seed"] < 2], memory.CELLS) == ""
