"""What each cell can remember: runs resume, models fit the budget, verdicts follow from intervals."""

import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "experiments"


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
