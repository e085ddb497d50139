"""C11: a state that is carried from batch to batch reaches the next batch, and the resumed run too."""

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.slow import slow
from tests.train.toy import WORDS, Notes, quiet, settings
from tests.train.toy import Task as Toy
from tests.train.traces import Trace, crash, resumed, same, terminate
from weft.errors import CheckpointError, ConfigError
from weft.nn.heads.head import Loss
from weft.train.checkpoints import Checkpoints
from weft.train.feeding import LinearFeeding
from weft.train.loop import train

TEXT = torch.from_numpy(np.random.default_rng(5).integers(4, WORDS, (3, 29)))
LENGTH = 5  # 28 tokens to predict: five whole pieces and one of three


class Piece(NamedTuple):
    tokens: Tensor
    continues: bool

    def to(self, device: torch.device) -> "Piece":
        return self

    @property
    def target_tokens(self) -> int:
        return self.tokens[:, 1:].numel()


class Model(nn.Module):
    """A GRU that notes which states it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, 7)
        self.cell = nn.GRU(7, 7, batch_first=True)
        self.output = nn.Linear(7, WORDS)
        self.dropout = nn.Dropout(0.2)
        self.given: list[Tensor | None] = []
        self.left: list[Tensor] = []

    def start(self, source: Any, mask: Tensor) -> tuple[Tensor]:
        return (torch.zeros(len(mask), 7),)

    def carry_on(self, batch: Piece, state: tuple[Tensor] | None) -> tuple[Loss, tuple[Tensor]]:
        assert state is None or not state[0].requires_grad
        self.given.append(None if state is None else state[0].clone())
        before = torch.zeros(1, 3, 7) if state is None else state[0][None]
        h, after = self.cell(self.embed(batch.tokens[:, :-1]), before)
        logp = self.output(self.dropout(h)).log_softmax(-1)
        picked = logp.gather(2, batch.tokens[:, 1:, None])
        self.left.append(after[0].detach().clone())
        return Loss(-picked.sum(), torch.tensor(picked.numel())), (after[0].detach(),)


class Plan:
    def epoch(self, number: int) -> list[np.ndarray]:
        return [np.array([at]) for at in range(0, 28, LENGTH)]


class Task(Toy):
    streams = True

    def model(self) -> nn.Module:
        self.made = Model()
        return self.made

    def plan(self, seed: int) -> Any:
        return Plan()

    def collate(self, numbers: np.ndarray) -> Any:
        self.on_batch(len(self.ids))
        self.ids.append(numbers.tolist())
        return Piece(TEXT[:, numbers[0] : numbers[0] + LENGTH + 1], bool(numbers[0] > 0))

    def validate(self, model: Any) -> Any:
        return super().validate(Still())


class Still:
    training = False

    def loss(self, batch: Any) -> Loss:
        return Loss(torch.tensor(1.0), torch.tensor(1.0))


CHOSEN = settings(accumulate=1, max_epochs=3, save_every=1, validate_every=4)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Model]:
    run, task = tmp_path_factory.mktemp("whole"), Task()
    return Trace(run, task.ids, train(task, run, CHOSEN, quiet(run))), task.made


def test_each_batch_begins_with_the_state_after_the_one_before_and_an_epoch_anew(
    whole: tuple[Trace, Model],
) -> None:
    _, model = whole
    assert len(model.given) == 18
    for number, given in enumerate(model.given):
        if number % 6 == 0:
            assert given is None
        else:
            assert given is not None and torch.equal(given, model.left[number - 1])


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        (5, terminate),
        (6, crash),
        *slow([(5, crash), (6, terminate), *product([1, 4, 11, 13], [terminate, crash])]),
    ],
)
def test_a_run_broken_anywhere_is_the_unbroken_run(
    tmp_path: Path, whole: tuple[Trace, Model], at: int, kind: Any
) -> None:
    found = resumed(tmp_path, CHOSEN, Task(on_batch=kind(at)), Task())
    assert set(found.differs(whole[0])) <= {"ids"}  # after a crash some are read again


def test_without_the_carried_state_it_would_not_be(tmp_path: Path, whole: tuple[Trace, Model]) -> None:
    train(Task(on_batch=terminate(8)), tmp_path, CHOSEN, quiet(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weft.train.ready.carried_state", lambda *given: None)
        outcome = train(Task(), tmp_path, CHOSEN, quiet(tmp_path))
    assert not same(Trace(tmp_path, [], outcome).weights, whole[0].weights)


def test_a_damaged_state_is_damage_of_the_checkpoint(tmp_path: Path) -> None:
    train(Task(), tmp_path, CHOSEN, quiet(tmp_path))
    checkpoints = Checkpoints(tmp_path, print)
    path = checkpoints.path(checkpoints.updates()[-1]) / "carried.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"is damaged \(carried.safetensors does not have the content"):
        checkpoints.load(checkpoints.updates()[-1])
    notes = Notes()
    assert train(Task(), tmp_path, CHOSEN, quiet(tmp_path, notes)).update == 18
    assert "trying the one before it" in notes.warnings[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"accumulate": 2}, "training.accumulate: .*got 2"),
        ({"feeding": LinearFeeding(updates=6, floor=0.3)}, "training.feeding: .*carried state"),
    ],
)
def test_what_does_not_go_with_a_carried_state_is_refused(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        train(Task(), tmp_path, settings(**{"accumulate": 1, **changes}), quiet(tmp_path))
