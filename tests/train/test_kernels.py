"""Which kernels a training uses is settled by its first update, recorded, and the same for all processes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.toy import Notes, Task, quiet
from tests.train.traces import BUSY, terminate, unbroken
from weft.nn.cells.gru import GRU
from weft.nn.kernels import choice
from weft.nn.kernels.linear import onednn, product_for
from weft.train import kernels
from weft.train.checkpoints import Checkpoints
from weft.train.loop import train
from weft.train.processes import Processes
from weft.train.workers import Workers

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    before = torch.get_num_threads()
    with choice.use(cells="auto", linear="auto"):  # whatever is forced for the suite
        yield
    torch.set_num_threads(before)


def clock_says(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    monkeypatch.setattr(choice, "_fastest", lambda ways: (list(ways)[place], "1 ms"))


def recorded(run: Path) -> dict[str, Any]:
    saved = Checkpoints(run, print).newest()
    assert saved is not None
    return {"kernels": saved.state.about.kernels, "machine": saved.state.about.machine}


@pytest.mark.skipif(onednn() is None, reason="this torch has one product only")
def test_a_resumed_run_keeps_its_kernels_whatever_the_clock_says_now(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock_says(monkeypatch, -1)
    assert (
        train(Task(on_batch=terminate(8)), tmp_path / "run", BUSY, quiet(tmp_path / "run")).exit_code == 143
    )
    before = recorded(tmp_path / "run")
    assert before["kernels"] and set(before["kernels"].values()) <= {"onednn", "tiles"}
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "empty"))
    clock_says(monkeypatch, 0)
    train(Task(), tmp_path / "run", BUSY, quiet(tmp_path / "run"))
    assert recorded(tmp_path / "run")["kernels"] == before["kernels"]


def test_after_the_first_update_no_clock_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    updates: list[int] = []
    monkeypatch.setattr(
        choice, "_fastest", lambda ways: (updates.append(task.batches) or next(iter(ways)), "")
    )
    task = Watching()
    train(task, tmp_path, BUSY, quiet(tmp_path))
    assert task.batches > 3 * BUSY.accumulate
    assert updates and max(updates) <= BUSY.accumulate
    assert "rows>=8" in " ".join(recorded(tmp_path)["kernels"])


class Watching(Task):
    """Meets layers and products of new sizes at every batch."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0

    def batch(self, ids: Any) -> Any:
        self.batches += 1
        size = min(self.batches, 9)
        cell = GRU(3, 5)
        x = torch.zeros(2 * size, size, 3)
        cell(x, cell.start(x))
        cell = GRU(3, size + 6)
        cell(x, cell.start(x))
        product_for(1 << 26)
        return super().batch(ids)


def test_what_the_first_update_meets_is_decided_for_every_size_and_number_of_threads() -> None:
    with choice.training():
        cell = GRU(3, 5)
        x = torch.zeros(2, 4, 3)
        with torch.autocast("cpu", torch.bfloat16):  # a validation is in float32
            cell(x, cell.start(x))
        workers = Workers(0, 2, CPU)
        workers.threads, workers.count = 2, 2
        kernels.decide(workers, Processes(CPU), CPU)
        taken = choice.taken()
        for threads in (1, 2):
            assert f"linear large float32 threads={threads}" in taken
            ours = [key for key in taken if key.startswith("gru") and f"threads={threads}" in key]
            ours = [key for key in ours if "mostly padding" not in key]
            assert len(ours) == 18, ours  # rows, steps, training in bfloat16 and inference in float32
            assert sum("autocast training" in key for key in ours) == 9
        assert torch.get_num_threads() == 2


def test_all_processes_take_the_kernels_of_the_first() -> None:
    class Second(Processes):
        first = False  # type: ignore[assignment]

        def told(self, value: Any = None) -> Any:
            return {"a product": "the first one's"}

    with choice.training():
        choice.choose("another product", {"one": lambda: None})
        kernels.decide(Workers(1, 1, CPU), Second(CPU), CPU)
        assert choice.taken() == {"a product": "the first one's"}


def test_a_run_that_moves_to_another_machine_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    train(Task(on_batch=terminate(8)), tmp_path, BUSY, quiet(tmp_path))
    notes = Notes()
    monkeypatch.setattr(kernels.measured, "machine", lambda: "a slide rule")
    train(Task(), tmp_path, BUSY, quiet(tmp_path, notes))
    (said,) = [warning for warning in notes.warnings if "slide rule" in warning]
    assert "torch" in said and "last digits" in said


def test_two_trainings_take_the_same_kernels_whatever_the_clock_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock_says(monkeypatch, -1)
    one = unbroken(tmp_path / "one", BUSY)
    clock_says(monkeypatch, 0)
    two = unbroken(tmp_path / "two", BUSY)
    assert one.differs(two) == []
    assert recorded(tmp_path / "one")["kernels"] == recorded(tmp_path / "two")["kernels"]
