"""Several texts in one training: each gives the share that its weight and the temperature say."""

from pathlib import Path
from typing import Any

import pytest

from tests.commands import corpus
from tests.commands.shell import refused, weft
from weft.tasks.seq2seq.base import PairTraining

LARGE, SMALL = 397, 41


@pytest.mark.parametrize(
    ("weight", "temperature", "share"),
    [
        (1, 1, SMALL / (LARGE + SMALL)),
        (1, 2, SMALL**0.5 / (LARGE**0.5 + SMALL**0.5)),
        (3, 5, (3 * SMALL) ** 0.2 / (LARGE**0.2 + (3 * SMALL) ** 0.2)),
    ],
)
def test_an_epoch_reads_the_share_that_weight_and_temperature_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight: int, temperature: int, share: float
) -> None:
    recipe = corpus.make(tmp_path / "toy")
    corpus.write(tmp_path / "toy", "more", SMALL, 9)
    read: list[int] = []
    collate = PairTraining.collate

    def counted(self: PairTraining, numbers: Any) -> Any:
        read.extend(numbers.tolist())
        return collate(self, numbers)

    monkeypatch.setattr(PairTraining, "collate", counted)
    answer = weft(
        "train", recipe, "--run", tmp_path / "run", f"data.mixed={{{tmp_path}/toy/more: {weight}}}",
        f"data.temperature={temperature}", "training.max_epochs=1", "training.validate_every=0",
        code=0)  # fmt: skip
    small = [number for number in read if number >= LARGE]
    assert len(read) == LARGE + SMALL and max(read) < LARGE + SMALL
    assert len(small) == pytest.approx(share * len(read), abs=0.5)
    times = [small.count(number) for number in range(LARGE, LARGE + SMALL)]
    assert max(times) - min(times) <= 1
    assert f"{len(small)} ({100 * len(small) / len(read):.1f} %) of " in answer.err


def test_a_weight_of_nothing_is_refused(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    said = refused(
        weft("train", recipe, "--run", tmp_path / "run", f"data.mixed={{{tmp_path}/toy/valid: 0}}")
    )
    assert "data.mixed" in said and "weight above 0" in said
