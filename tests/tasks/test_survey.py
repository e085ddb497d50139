"""What `weft init` plans fits the set: updates enough, and no warm-up that outlasts the training."""

import pytest

from weft.tasks.init import EPOCHS, UPDATES, planned
from weft.train.schedules import CosineRestarts, LinearSchedule, unreached
from weft.train.settings import TrainingSettings


@pytest.mark.parametrize("batches", [0.2, 1, 4, 9, 37, 1e5])
def test_the_warm_up_is_a_tenth_at_most_and_large_sets_stay_as_usual(batches: float) -> None:
    plan = planned(batches, epochs=10, warmup=400)
    updates = max(1, batches) * plan.epochs
    assert 1 <= plan.warmup <= max(1, updates / 10)
    assert updates >= UPDATES or plan.epochs == EPOCHS
    if batches > 1e4:
        assert plan == (10, 400)


def test_a_warm_up_longer_than_the_training_is_said() -> None:
    settings = TrainingSettings(max_epochs=30, accumulate=2)
    assert settings.planned(17) == 30 * 9
    said = unreached(LinearSchedule(warmup=400), settings.planned(17))
    assert "270 planned updates, got 400" in said and "warmup: 27" in said
    assert unreached(LinearSchedule(warmup=270), 270) == unreached(LinearSchedule(warmup=400), 0) == ""
    assert "cycles: expected at most the 104 planned updates, got 400" in unreached(
        CosineRestarts(cycles=400), 104
    )
    assert unreached(CosineRestarts(cycles=4), 104) == unreached(CosineRestarts(cycles=4), 0) == ""
    assert TrainingSettings(max_updates=50, max_epochs=30).planned(17) == 50
    assert TrainingSettings(max_minutes=1, max_updates=0, max_epochs=0).planned(17) == 0
