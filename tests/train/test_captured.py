"""Updates that are launched now and read later are, bit for bit, updates taken one by one.

Here no graph is recorded; fixed buffers, masked rows, late reading and skipping are as on a GPU.
"""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.gpu import GPU, Graph, gpu, rehearsed
from tests.laws.members import normal
from tests.slow import leading
from tests.train.toy import Notes, Task, quiet, settings
from tests.train.traces import Trace, resumed, terminate
from weft import masks
from weft.config import read_recipe
from weft.errors import ShapeError
from weft.masks import static_shapes
from weft.nn.embed.words import Spelled
from weft.nn.heads.head import Loss, Normal, Point, Quantile, Student
from weft.run.training import check_recipe
from weft.tasks.labels.base import LabelBatch
from weft.tasks.language.data import collate_lines
from weft.tasks.masked.model import hide
from weft.tasks.seq2seq.batch_search import pad
from weft.train.captured import CannotCapture, CapturedUpdates, why_not_captured
from weft.train.loop import train
from weft.train.objectives.likelihood import OwnLoss
from weft.train.optimisers import SGD, AdamW
from weft.train.position import BatchGroup, Position
from weft.train.schedules import CosineSchedule
from weft.train.update import NonFinite


class TokenRows(NamedTuple):
    tokens: Tensor
    mask: Tensor

    def to(self, device: torch.device) -> "TokenRows":
        return masks.to_device(self, device)

    @property
    def target_tokens(self) -> int:
        return int(self.mask[:, 1:].sum())


class Rows(Task):
    """The toy, whose batches hold nothing but tensors."""

    def collate(self, numbers: np.ndarray) -> Any:
        return TokenRows(*super().collate(numbers)[1:])


class NamedPairs(NamedTuple):
    """A batch of pairs that cannot be filled up."""

    source: Tensor
    source_mask: Tensor
    target_in: Tensor
    target_out: Tensor
    target_mask: Tensor
    target_tokens: int


class Sentences(NamedTuple):
    """A batch of sentences that cannot be filled up."""

    source: Spelled
    source_mask: Tensor
    target: Tensor
    target_tokens: int


AGAIN = {"ids"}  # the batches of an update that was not recorded are read again
PLAIN: dict[str, Any] = {"schedule": CosineSchedule(), "validate_every": 4, "save_every": 3, "log_every": 5}


def chosen(**changes: Any) -> Any:
    return settings(**{**PLAIN, "cuda_graphs": True, **changes})


def trained(run: Path, rules: Any, made: Rows | None = None, notes: Notes | None = None) -> Trace:
    made = made or Rows()
    return Trace(run, made.ids, train(made, run, rules, quiet(run, notes)))


def launcher_of(made: Any, model: Any, rules: Any) -> CapturedUpdates:
    """As after the first update, in which an optimiser gets its state."""
    optimiser = rules.optimiser.build(model)
    model.loss(made.collate(np.arange(4))).total.backward()
    optimiser.step()
    return CapturedUpdates(made, OwnLoss(model), optimiser, rules, torch.device("cpu"))


@pytest.mark.parametrize(
    "changes",
    [{}, {"loss": "per_sequence"}, {"accumulate": 1, "clip_norm": 0.0}, {"precision": "bfloat16"}],
    ids=["usual", "per_sequence", "no clipping", "bfloat16"],
)
def test_a_training_is_the_same(tmp_path: Path, changes: Any) -> None:
    plain = trained(tmp_path / "plain", chosen(**changes, cuda_graphs=False))
    captured = trained(tmp_path / "captured", chosen(**changes))
    assert captured.differs(plain) == []


def test_a_training_stopped_in_between_is_the_unbroken_one(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", chosen())
    for at in (1, 8, 13, 20):
        found = resumed(tmp_path / str(at), chosen(), Rows(on_batch=terminate(at)), Rows())
        assert found.differs(whole) == []


class Broken(Rows):
    """Its loss is NaN in every batch that has a certain example, in the first epoch the fifth of seven."""

    def model(self) -> Any:
        model = super().model()
        plain = model.loss
        bad = self.batch(self.plan(settings().seed).epoch(0)[4][:1]).tokens[0]

        def loss(batch: Any, **forced: Any) -> Loss:
            found = plain(batch, **forced)
            wrong = model.training and any(row[row > 0].tolist() == bad.tolist() for row in batch.tokens)
            return found._replace(total=found.total * (float("nan") if wrong else 1.0))

        model.loss = loss
        return model


@pytest.mark.parametrize("reaction", ["skip", "roll_back"])
def test_an_update_that_is_not_finite_is_skipped_with_the_same_words(tmp_path: Path, reaction: str) -> None:
    traces, notes = [], []
    for captured in (False, True):
        note = Notes()
        rules = chosen(
            cuda_graphs=captured, non_finite=reaction, max_skips=99, accumulate=1, save_every=2, max_epochs=2
        )
        traces.append(trained(tmp_path / str(captured), rules, Broken(), note))
        notes.append(note.warnings)
    assert notes[1] == notes[0] and "skipped" in notes[0][0]
    assert set(traces[1].differs(traces[0])) <= AGAIN


def test_an_update_that_is_not_finite_ends_the_training_where_it_happened(tmp_path: Path) -> None:
    said = []
    for captured in (False, True):
        run = tmp_path / str(captured)
        with pytest.raises(NonFinite) as refused:
            train(Broken(), run, chosen(cuda_graphs=captured, accumulate=1), quiet(run))
        saved = {one.name for one in (run / "checkpoints").iterdir()}
        said.append((str(refused.value), saved))
    assert said[0] == said[1]


def test_what_cannot_be_recorded_is_said_and_trained_as_usual(tmp_path: Path) -> None:
    note = Notes()
    sgd = chosen(optimiser=SGD(lr=0.1))
    train(Rows(), tmp_path / "a", sgd, quiet(tmp_path / "a", note))
    assert any("training.cuda_graphs: SGD is not a fused Adam" in text for text in note.texts)


class Normed(Rows):
    """The toy with a batch norm, whose running means an update changes."""

    def model(self) -> Any:
        model = super().model()
        norm = torch.nn.BatchNorm1d(5)
        model.norm = torch.nn.Sequential(Turned(), norm, Turned())
        return model


class Turned(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mT


def test_a_warm_up_leaves_running_means_as_they_were(tmp_path: Path) -> None:
    plain = trained(tmp_path / "plain", chosen(cuda_graphs=False), Normed())
    assert trained(tmp_path / "captured", chosen(), Normed()).differs(plain) == []


def test_memory_that_ends_while_buffers_are_made_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Rows()
    model: Any = made.model().train()
    launcher = launcher_of(made, model, chosen())

    def scarce(batch: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")

    monkeypatch.setattr("weft.train.captured._cloned", scarce)
    before = [parameter.clone() for parameter in model.parameters()]
    with pytest.raises(CannotCapture, match="not enough memory to record one"):
        launcher.launch(BatchGroup(0, 0, [np.arange(4)], 1, 1, 0), Position(), 1.0)
    assert all(torch.equal(one, two) for one, two in zip(before, model.parameters(), strict=True))
    assert launcher.pending == []


class FilledRows(TokenRows):
    """A batch that is filled up with masked rows and columns."""

    __slots__ = ()

    def filled(self) -> "FilledRows":
        rows, columns = map(masks.grid, self.tokens.shape)
        return FilledRows(*(masks.fill(part, rows, columns) for part in self))


class Filled(Rows):
    """The toy with such batches, and a model of one's own that may not know masked rows."""

    def __init__(self, changed: Any = None) -> None:
        super().__init__()
        self.changed = changed

    def collate(self, numbers: np.ndarray) -> Any:
        return FilledRows(*super().collate(numbers))

    def model(self) -> Any:
        model = super().model()
        plain, changed = model.loss, self.changed
        model.loss = plain if changed is None else lambda batch, **more: changed(batch, plain(batch, **more))
        return model


def per_row(batch: Any, found: Loss) -> Loss:
    """A loss that every row adds to, also a masked one."""
    return found._replace(total=found.total + 3.0 * len(batch.tokens))


def shortest(batch: Any, found: Loss) -> Loss:
    if not bool(batch.mask.any(1).all()):
        raise ValueError("a row has no token")
    return found


def infinite(batch: Any, found: Loss) -> Loss:
    """A loss that is not finite where shapes are static, as of a fault in what was recorded."""
    return found._replace(total=found.total * (float("inf") if masks.static() else 1.0))


@pytest.mark.parametrize(
    ("changed", "why"),
    [(None, ""), (per_row, "change the loss of this model from"), (shortest, "a row has no token")],
)
def test_a_model_that_masked_rows_change_is_not_recorded(changed: Any, why: str) -> None:
    made = Filled(changed)
    model: Any = made.model().train()
    model.norm.eval()
    launcher = launcher_of(made, model, chosen())
    group = BatchGroup(0, 0, [np.arange(4)], 1, 1, 0)
    with pytest.raises(CannotCapture, match=why) if why else nullcontext():
        launcher.launch(group, Position(), 1.0)
    assert launcher.checked == (not why)
    assert model.training and model.dropout.training and not model.norm.training


@pytest.mark.slow
@pytest.mark.parametrize("changed", [per_row, shortest, infinite])
def test_what_must_not_be_recorded_is_trained_as_usual(tmp_path: Path, changed: Any) -> None:
    note = Notes()
    plain = trained(tmp_path / "plain", chosen(cuda_graphs=False), Filled(changed), note)
    assert set(trained(tmp_path / "captured", chosen(), Filled(changed), note).differs(plain)) <= AGAIN
    assert len([text for text in note.warnings if "not recorded from here on" in text]) == 1


class Scarce(Rows):
    """Its static batches raise an error until so many were computed."""

    error: Exception

    def model(self) -> Any:
        model = super().model()
        plain, self.left = model.loss, 3

        def loss(batch: Any, **forced: Any) -> Loss:
            if masks.static() and self.left:
                self.left -= 1
                raise self.error
            return plain(batch, **forced)

        model.loss = loss
        return model


@pytest.mark.parametrize(
    ("error", "recorded", "what"),
    [
        (torch.OutOfMemoryError("CUDA out of memory.\nmore"), False, "not enough memory"),
        (ShapeError("expected at most 5 positions, got 8"), True, "at most 5 positions"),
    ],
)
def test_an_update_that_cannot_be_recorded_is_taken_as_usual(
    tmp_path: Path, error: Exception, recorded: bool, what: str
) -> None:
    plain = trained(tmp_path / "plain", chosen(cuda_graphs=False))
    note, made = Notes(), Scarce()
    made.error = error
    assert set(trained(tmp_path / "scarce", chosen(), made, note).differs(plain)) <= AGAIN
    (said,) = [text for text in note.warnings if "cuda_graphs" in text]
    assert what in said and ("such updates" in said) == recorded
    assert made.left == (0 if recorded else 2)


def test_further_shapes_are_trained_as_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = trained(tmp_path / "plain", chosen(cuda_graphs=False))
    monkeypatch.setattr("weft.train.captured.SHAPES", 1)
    note = Notes()
    assert set(trained(tmp_path / "few", chosen(), notes=note).differs(plain)) <= AGAIN
    assert [text for text in note.warnings if "more than 1 shapes" in text]
    assert "training.cuda_graphs: a CPU takes the same steps without graphs" in note.texts


@pytest.mark.parametrize(
    "recipe", leading(["language/help-gpt", "translate/help-demo", "translate/help-transformer"])
)
def test_a_whole_update_asks_a_gpu_for_nothing(recipe: str) -> None:
    model, batch = rehearsed(recipe)
    rules = chosen(optimiser=AdamW(lr=0.01), device="cuda", precision="float32")
    with gpu():
        learner: Any = model.train().to(GPU)
        optimiser = rules.optimiser.build(learner)
        for parameter in learner.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimiser.step()
        made: Any = SimpleNamespace(streams=False, collate=lambda numbers: batch)
        captured = CapturedUpdates(made, OwnLoss(learner), optimiser, rules, GPU, checked=True)
        assert why_not_captured(made, OwnLoss(learner), optimiser, rules) == ""
        group, before = BatchGroup(0, 0, [np.arange(2)] * 2, 2, 1, 0), Graph.replays
        captured.launch(group, Position(), 1.0)
        captured.launch(group, Position(), 0.5)
        assert Graph.replays == before + 2 * 3  # two batches and the step
        assert len(captured.pending) == 2


def test_a_batch_whose_letters_have_no_mask_yet_is_launched() -> None:
    model, batch = rehearsed("tag/ewt-bilstm")
    batch = Sentences(*batch)
    assert batch.source.real is None
    made = SimpleNamespace(streams=False, collate=lambda numbers: batch)
    captured = launcher_of(made, model.train(), chosen(optimiser=AdamW(lr=0.01)))
    captured.launch(BatchGroup(0, 0, [np.arange(2)], 1, 1, 0), Position(), 1.0)
    assert captured.read()[0].stepped


RECIPES = ["translate/help-demo", "translate/help-transformer", "translate/help-rnn-plain"]


def same_loss_and_gradients(model: Any, *batches: Any) -> None:
    found = []
    for batch in batches:
        model.zero_grad()
        loss = model.loss(batch)
        loss.total.backward()
        found.append([loss.total, loss.count, *(p.grad for p in model.parameters())])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("recipe", RECIPES)
def test_masked_rows_and_columns_change_neither_loss_nor_gradient(recipe: str) -> None:
    task: Any = check_recipe(read_recipe(f"recipes/{recipe}.yaml", ())).task
    model = task.small_model().double().eval()
    batch = task.small_batch()
    filled = batch.filled()
    assert filled.source.shape > batch.source.shape and filled.target_out.shape[1] % 8 == 0
    same_loss_and_gradients(model, batch, filled)


LABELS = [
    "tag/ewt-bilstm",
    "tag/ewt-bilstm-crf",
    "classify/help-language-lstm-mean",
    "classify/help-language-transformer",
    "language/help-lstm",
    "language/help-gpt",
    "masked/help-bert",
]


def batch_of(recipe: str, task: Any, model: Any) -> Any:
    """Three rows of 5, 3 and 1 tokens for a recipe that reads one side."""
    rows = [[4, 3, 2, 4, 4], [3, 4, 2], [4]]
    tokens, mask = pad(rows)
    if recipe.startswith("language"):
        return collate_lines(rows)
    if recipe.startswith("masked"):
        return hide(rows, 5, share=0.4, seed=[3])
    if recipe.startswith("tag"):
        words = Spelled(tokens, torch.tensor([[1, 2, 0], [2, 2, 1], [1, 0, 0]]), tokens % 3)
        return LabelBatch(words, mask, torch.where(mask, tokens % 2, 0), int(mask.sum()))
    return LabelBatch(tokens, mask, torch.tensor([0, 1, 0]), 3)


@pytest.mark.parametrize("recipe", leading(LABELS, 2))
def test_masked_columns_of_batches_of_one_side_change_nothing(recipe: str) -> None:
    task: Any = check_recipe(read_recipe(f"recipes/{recipe}.yaml", ())).task
    model = task.small_model().double().eval()
    batch = batch_of(recipe, task, model)
    filled = batch.filled()
    assert filled[1].shape[1] == 8 and filled.target_tokens == batch.target_tokens
    same_loss_and_gradients(model, batch, filled)


HEADS = {
    "point": Point(5),
    "absolute": Point(5, error="absolute"),
    "huber": Point(5, error="huber"),
    "normal": Normal(5),
    "student": Student(5),
    "quantile": Quantile(5),
    "mean": Quantile(5, best="mean"),
}


@pytest.mark.parametrize("name", leading(HEADS, 2))
def test_a_head_of_numbers_has_the_same_loss_where_shapes_are_static(name: str) -> None:
    head = HEADS[name].double()
    h, target, mask = normal(3, 7, 5), normal(3, 7, seed=2), normal(3, 7, seed=3) > -0.5
    found = []
    for context in (nullcontext(), static_shapes()):
        leaf = h.clone().requires_grad_()
        head.zero_grad()
        with context:
            loss = head.loss(leaf, target, mask)
        loss.total.backward()
        found.append([loss.total, loss.count, leaf.grad, *(p.grad for p in head.parameters())])
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("recipe", RECIPES[:2])
def test_one_launch_of_a_translator_is_one_update(recipe: str) -> None:
    task: Any = check_recipe(read_recipe(f"recipes/{recipe}.yaml", ())).task
    rules = replace(settings(), optimiser=AdamW(lr=0.01), cuda_graphs=True)
    moved = []
    for filled in (False, True):
        torch.manual_seed(3)
        model = task.small_model().double().eval()
        batch = task.small_batch()

        given = batch if filled else NamedPairs(*batch[:5], batch.target_tokens)
        made: Any = SimpleNamespace(streams=False, collate=lambda numbers, given=given: given)
        captured = launcher_of(made, model, rules)
        before = [p.detach().clone() for p in model.parameters()]
        assert why_not_captured(made, OwnLoss(model), captured.optimiser, rules) == ""
        group = BatchGroup(0, 0, [torch.arange(len(batch.source)).numpy()] * 2, 2, 1, 0)
        captured.launch(group, Position(), 1.0)
        (result,) = captured.read()
        assert result.stepped and result.targets == 2 * batch.target_tokens
        moved.append([p.detach() - old for p, old in zip(model.parameters(), before, strict=True)])
    torch.testing.assert_close(moved[1], moved[0], rtol=1e-6, atol=1e-9)
