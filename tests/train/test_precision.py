"""`precision: auto` is decided by timing the first batch, recorded, and changes nothing else."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.train.toy import Notes, Task, quiet
from tests.train.traces import BUSY, Trace, terminate, unbroken
from weft.nn import devices
from weft.nn.kernels import choice
from weft.train import precision
from weft.train.checkpoints import Checkpoints
from weft.train.loop import train

AUTO = replace(BUSY, precision="auto")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(devices, "fast_bfloat16", lambda device: True)
    with choice.use(cells="auto", linear="torch"):
        yield


def clock_says(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Let the clock say a precision after the passes have run; the questions are listed."""
    asked: list[str] = []

    def says(ways: Mapping[str, Any]) -> tuple[str, str]:
        if "bfloat16" not in ways:
            return next(iter(ways)), "first"
        for way in ways.values():
            way()
        asked.append(", ".join(ways))
        return name, "float32 2 ms, bfloat16 3 ms"

    monkeypatch.setattr(choice, "_fastest", says)
    return asked


def recorded(run: Path) -> dict[str, str]:
    saved = Checkpoints(run, print).newest()
    assert saved is not None
    return saved.state.about.kernels


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_the_measured_precision_is_trained_in_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    asked = clock_says(monkeypatch, name)
    auto, notes = Task(), Notes()
    outcome = train(auto, tmp_path / "auto", AUTO, quiet(tmp_path / "auto", notes))
    assert asked == ["float32, bfloat16"]
    assert recorded(tmp_path / "auto")["precision"] == name
    assert any("float32 2 ms, bfloat16 3 ms" in text for text in notes.texts)
    forced = unbroken(tmp_path / "forced", replace(BUSY, precision=name))
    assert auto.ids[0] == auto.ids[1]  # the first batch was read once more
    assert Trace(tmp_path / "auto", auto.ids[1:], outcome).differs(forced) == []
    other = {"float32": "bfloat16", "bfloat16": "float32"}[name]
    assert "weights" in forced.differs(unbroken(tmp_path / "other", replace(BUSY, precision=other)))


def test_a_resumed_run_keeps_its_precision_whatever_the_clock_says_now(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock_says(monkeypatch, "bfloat16")
    whole = unbroken(tmp_path / "whole", AUTO)
    first = train(Task(on_batch=terminate(9)), tmp_path / "run", AUTO, quiet(tmp_path / "run"))
    assert first.exit_code == 143
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "empty"))
    asked = clock_says(monkeypatch, "float32")
    resumed = unbroken(tmp_path / "run", AUTO)
    assert asked == [] and recorded(tmp_path / "run")["precision"] == "bfloat16"
    assert [name for name in resumed.differs(whole) if name not in ("ids", "lines", "outcome")] == []


def test_a_run_of_an_earlier_version_resumes_by_its_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bfloat16 = replace(BUSY, precision="bfloat16")
    whole = unbroken(tmp_path / "whole", bfloat16)
    train(Task(on_batch=terminate(8)), tmp_path / "run", bfloat16, quiet(tmp_path / "run"))
    assert "precision" not in recorded(tmp_path / "run")
    asked = clock_says(monkeypatch, "float32")
    resumed = unbroken(tmp_path / "run", AUTO)
    assert asked == []
    assert [name for name in resumed.differs(whole) if name not in ("ids", "lines", "outcome")] == []


def test_the_next_run_of_the_same_model_takes_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert clock_says(monkeypatch, "bfloat16") == []
    unbroken(tmp_path / "one", AUTO)
    asked = clock_says(monkeypatch, "float32")
    unbroken(tmp_path / "two", AUTO)
    assert asked == [] and recorded(tmp_path / "two")["precision"] == "bfloat16"


@pytest.mark.parametrize("case", ["slow bfloat16", "deterministic"])
def test_without_a_fair_comparison_it_is_float32(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str
) -> None:
    asked = clock_says(monkeypatch, "bfloat16")
    monkeypatch.setattr(devices, "fast_bfloat16", lambda device: case != "slow bfloat16")
    auto = unbroken(tmp_path / "auto", replace(AUTO, deterministic=case == "deterministic"))
    forced = unbroken(tmp_path / "forced", replace(BUSY, deterministic=case == "deterministic"))
    assert asked == [] and [name for name in auto.differs(forced) if name != "ids"] == []


def test_buffers_and_random_generators_are_put_back() -> None:
    module = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout())
    before = {name: one.clone() for name, one in module.state_dict().items()}
    state = torch.get_rng_state()
    with precision._untouched(module):
        module(torch.randn(5, 3))
        assert not torch.equal(module[0].running_mean, before["0.running_mean"])  # type: ignore[arg-type]
    assert all(torch.equal(one, before[name]) for name, one in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
