"""A record has what `weft evaluate` printed and what a reader needs to measure it again."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
SCORES = {"title": "ten texts", "scores": {"accuracy": {"value": 0.5, "baselines": {"a guess": 0.25}}}}
STATE: dict[str, Any] = {
    "position": {"update": 7, "cpu_seconds": 90.0},
    "about": {"seed": 2, "precision": "float32", "machine": "a processor"},
}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, with the folder of records and the program replaced by small ones."""
    monkeypatch.syspath_prepend(FOLDER)
    import measure_recipes

    def weft(command: Sequence[str]) -> None:
        calls.append(command[0])
        if command[0] == "train":
            run = Path(command[command.index("--run") + 1])
            (run / "checkpoints" / "step-00000007").mkdir(parents=True)
            (run / "checkpoints" / "step-00000007" / "state.json").write_text(json.dumps(STATE))
            (run / "checkpoints.json").write_text('{"last": 7}')
            (run / "README.md").touch()
        else:
            Path(command[command.index("--json") + 1]).write_text(json.dumps(SCORES))

    calls: list[str] = []
    monkeypatch.setattr(measure_recipes, "calls", calls, raising=False)
    monkeypatch.setattr(measure_recipes, "weft", weft)
    monkeypatch.setattr(measure_recipes, "now", lambda: {"date": "2026-01-02", "commit": "abc"})
    monkeypatch.setattr(measure_recipes, "RECORDS", tmp_path / "measured")
    return measure_recipes


def call(script: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["measure_recipes.py", *words])
    script.main()


def test_a_run_is_trained_once_and_evaluated_each_time(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = ("--runs", str(tmp_path / "runs"))
    call(script, monkeypatch, *runs, "trec-letters", "data.folder=$WEFT_DATA/cls/trec", "training.seed=2")
    record = json.loads((tmp_path / "measured" / "trec-letters-seed-2.json").read_text("utf-8"))
    trained, evaluated = record["commands"]
    run = "runs/trec-letters-seed-2"
    assert trained == f"weft train trec-letters --run {run} data.folder=$WEFT_DATA/cls/trec training.seed=2"
    assert evaluated == f"weft evaluate {run}"
    assert record["settings"]["training"]["seed"] == 2
    facts = {"updates": 7, "cpu_minutes": 1.5, **STATE["about"]}
    assert record["training"] == {"date": "2026-01-02", "commit": "abc", **facts}
    assert record["evaluation"]["scores"] == SCORES["scores"]
    call(script, monkeypatch, *runs, "--again")
    assert script.calls == ["train", "evaluate", "evaluate"]
    assert json.loads((tmp_path / "measured" / "trec-letters-seed-2.json").read_text("utf-8")) == record
