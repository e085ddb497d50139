"""What a training does about a full device, numbers that are not finite, and chance.

Read next: test_update.py, the policies raise and skip.
"""

import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.commands import corpus
from tests.commands.shell import weft
from tests.train.several import Pairs
from tests.train.test_update import ROWS, Broken, fresh, step
from tests.train.toy import Model, Notes, Task, Validation, quiet, settings
from weft.errors import ConfigError
from weft.nn.heads.head import Loss
from weft.train.checkpoints import Checkpoints, CheckpointWriter
from weft.train.feeding import ConstantFeeding
from weft.train.loop import train
from weft.train.objectives.likelihood import OwnLoss
from weft.train.optimisers import SGD, AdamW
from weft.train.position import BatchGroup, Position, deterministic
from weft.train.update import Divergence, NonFinite, Updates, explain


class Small(Model):
    """Its device has memory for so many rows."""

    rows = 3

    def loss(self, batch: Any, **feeding: Any) -> Loss:
        if torch.is_grad_enabled() and len(batch.numbers) > self.rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore words")
        return super().loss(batch, **feeding)


def small(rows: int) -> Small:
    torch.manual_seed(5)
    model = Small(0.0).double()
    model.rows = rows
    return model


@pytest.mark.parametrize(("rows", "split"), [(1, 1), (3, 1), (7, 0)])
def test_a_batch_that_does_not_fit_is_split_with_the_same_gradient(rows: int, split: int) -> None:
    whole, expected = step([ROWS], fresh())
    taken, moved = step([ROWS], small(rows))
    assert taken.split == split
    assert (taken.count, taken.tokens) == (whole.count, whole.tokens)
    assert taken.total == pytest.approx(whole.total, abs=1e-12)
    for one, other in zip(moved, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


class Tight(nn.Module):
    """A model of pairs whose device has memory for so many rows."""

    def __init__(self, inner: nn.Module, rows: int) -> None:
        super().__init__()
        self.inner, self.most = inner, rows

    def loss(self, batch: Any, **feeding: Any) -> Loss:
        if len(batch.source) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return self.inner.loss(batch, **feeding)  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["transformer", "recurrent", "lookback"])
@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rows", [3, 1])
def test_its_parts_draw_the_dropout_and_the_true_words_of_the_whole(
    kind: str, again: bool, rows: int
) -> None:
    task = Pairs(kind, 4, 0.4, torch.float64)
    found = []
    for most in (rows, len(ROWS)):
        torch.manual_seed(5)
        model = Tight(task.model(), most).train()
        feeding = {} if kind == "transformer" else {"feeding": ConstantFeeding(p=0.5)}
        chosen = settings(
            optimiser=SGD(lr=1.0), clip_norm=0.0, accumulate=1, checkpoint_activations=again, **feeding
        )
        before = [p.detach().clone() for p in model.parameters()]
        group = BatchGroup(0, 0, [ROWS], 1, 1, 0)
        updates = Updates(task, OwnLoss(model), chosen.optimiser.build(model), chosen)
        taken = updates.take(group, Position(), 1.0)
        moved = [p.detach() - old for p, old in zip(model.parameters(), before, strict=True)]
        found.append((taken.split, taken.total, taken.tokens, moved))
    (split, total, tokens, parts), (once, expected, all_tokens, whole) = found
    assert (split, once, tokens) == (1, 0, all_tokens)
    assert total == pytest.approx(expected, abs=1e-10)
    for one, other in zip(parts, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_a_row_that_does_not_fit_alone_is_told() -> None:
    with pytest.raises(ConfigError, match=r"batch of 1 \(CUDA out of memory.* make batches"):
        step([ROWS], small(0))


def test_a_training_says_once_that_its_batches_were_split(tmp_path: Path) -> None:
    task, notes = Task(), Notes()
    task.model = lambda: small(3).float()  # type: ignore[method-assign]
    assert train(task, tmp_path, settings(max_updates=4), quiet(tmp_path, notes)).update == 4
    assert len([said for said in notes.warnings if "computed in parts" in said]) == 1


def stumbling() -> Broken:
    """Its loss is infinite for the batch with row 14."""
    torch.manual_seed(5)
    model = Broken(0.0)
    model.where = "loss"
    return model


def test_rolling_back_takes_the_newest_checkpoint_and_the_next_batch(tmp_path: Path) -> None:
    task, notes, model = Task(), Notes(), stumbling()
    task.model = lambda: model  # type: ignore[method-assign]
    seed = next(n for n in range(1, 99) if 14 in task.plan(n).epoch(0)[5])
    chosen = settings(
        optimiser=SGD(lr=0.1, momentum=0.9),
        max_updates=7,
        max_epochs=0,
        accumulate=1,
        save_every=3,
        validate_every=7,
        non_finite="roll_back",
        workers=1,
        seed=seed,
    )
    task.validate = lambda model: Validation({"loss": 1.0, "score": 1.0}, [])  # type: ignore[method-assign]
    train(task, tmp_path, chosen, quiet(tmp_path, notes))
    assert any("update 6: the loss is inf" in said and "update 3 were" in said for said in notes.warnings)
    # The same as a training from the same start that met neither that batch nor the two before it.
    twin = stumbling()
    optimiser = chosen.optimiser.build(twin)
    batches = task.plan(seed).epoch(0)
    for ids in [*batches[:3], *batches[6:]]:
        optimiser.zero_grad()
        twin.loss(task.batch(ids)).mean.backward()
        nn.utils.clip_grad_norm_(twin.parameters(), chosen.clip_norm)
        optimiser.step()
    for mine, other in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-6)


def test_rolling_back_needs_a_checkpoint(tmp_path: Path) -> None:
    task = Task()
    task.model = stumbling  # type: ignore[method-assign]
    with pytest.raises(NonFinite, match=r"roll_back needs a checkpoint.* training\.save_every"):
        train(task, tmp_path, settings(max_epochs=1, non_finite="roll_back", save_every=99), quiet(tmp_path))


def test_deterministic_holds_inside_and_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    with deterministic(True):
        assert torch.are_deterministic_algorithms_enabled()
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(False):
        assert not torch.are_deterministic_algorithms_enabled()


def test_a_bidirectional_lstm_with_dropout_trained_twice_is_bit_equal(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    changes = [
        "model.encoder={use: recurrent, cell: lstm, sizes: [11, 13], bidirectional: true, dropout: 0.3}",
        "training.max_updates=9",
        "training.validate_every=9",
        f"training.device={'cuda' if torch.cuda.is_available() else 'cpu'}",
    ]
    models = []
    for name in ("one", "two"):
        weft("train", recipe, "--run", tmp_path / name, "--deterministic", *changes, code=0)
        models.append((tmp_path / name / "model.safetensors").read_bytes())
    assert models[0] == models[1]
    assert "deterministic: true" in (tmp_path / "one" / "recipe.yaml").read_text()


class Two(torch.autograd.Function):
    """Two outputs; the gradient of one that is not used stays None, as in the compiled cells."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.set_materialize_grads(False)
        return x.clone(), x.clone()

    @staticmethod
    def backward(ctx: Any, one: torch.Tensor, unused: None) -> torch.Tensor:
        assert unused is None
        return one


class Layer(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return Two.apply(x)


def test_the_guard_reads_past_a_gradient_that_is_not_there() -> None:
    model = nn.Sequential(nn.Linear(2, 3), Layer())
    losses = (Loss(1e38 * model(torch.ones(1, 2))[0].sum(), torch.tensor(1.0)) for _ in range(1))
    where, what = explain(model, losses)
    assert where == 0 and "the norm of the gradient overflows" in what


def test_a_training_that_diverges_is_told_once_with_what_to_do() -> None:
    for losses, expected in (
        ([3.0, 2.5, 4e30, 4e31], 3),  # at once
        ([3.0, 2.0, *[25.0] * 12], 12),  # the tenth in a row above ten times the lowest
        ([3.0, 2.0, *[25.0, 3.0] * 12], 0),  # outliers
        ([900.0, 700.0, 800.0, 2.0], 0),  # large from the start, and falling
        ([-5.0, -8.0, -3.0, 60.0, -9.0], 0),  # a density may be above 1
    ):
        watch = Divergence(settings(clip_norm=0.0))
        told = [watch.after(update, loss) for update, loss in enumerate(losses, 1)]
        assert [update for update, said in enumerate(told, 1) if said] == [expected] * bool(expected)
        if expected:
            words = rf"update {expected}: .* diverges .* training.optimiser.lr \(now 0.01\).*clip_norm: 1.0"
            assert re.match(words, told[expected - 1])


def test_a_diverging_training_warns(tmp_path: Path) -> None:
    notes = Notes()
    chosen = settings(optimiser=AdamW(lr=1e4), clip_norm=0.0, max_epochs=2)
    train(Task(), tmp_path, chosen, quiet(tmp_path, notes))
    assert [said for said in notes.warnings if "diverges" in said and "lr (now 10000)" in said]


def test_without_a_thread_for_it_a_checkpoint_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        if thread.name == "weft-saving":
            raise RuntimeError("can't start new thread")
        begin(thread)

    begin = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    outcome = train(Task(), tmp_path, settings(save_every=2), quiet(tmp_path))
    assert (outcome.reason, outcome.update) == ("max_epochs", 9)
    assert Checkpoints(tmp_path, print).load(8).weights


def test_what_fails_while_the_saving_thread_starts_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise MemoryError("no room for a stack")

    saving = CheckpointWriter(Checkpoints(tmp_path, print), background=True, first=True)
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(MemoryError, match="no room"), saving:
        saving.save(lambda: None, [])  # type: ignore[arg-type, return-value]
