"""What follows from the scores: the best, patience, the mean of checkpoints; and what settings refuse."""

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from tests.train.toy import Notes, Task, quiet, settings
from tests.train.traces import Crash, crash, same, terminate
from weft.errors import ConfigError, DataError
from weft.nn import devices
from weft.store import jsonfile, weights
from weft.train.checkpoints import Checkpoints
from weft.train.finish import mean_weights
from weft.train.history import History, SavedValidation
from weft.train.loop import train
from weft.train.schedules import CosineRestarts, CosineSchedule
from weft.train.settings import TrainingSettings

NAN = float("nan")


def history(*scores: float, higher: bool = True) -> History:
    made = History("score", higher)
    for update, score in enumerate(scores, 1):
        made = made.add(update, {"score": score})
    return made


@pytest.mark.parametrize(
    ("scores", "higher", "ranked", "waited"),
    [
        ([], True, [], 0),
        ([1.0], True, [1], 0),
        ([1.0, 3.0, 2.0], True, [2, 3, 1], 1),
        ([1.0, 3.0, 2.0], False, [1, 3, 2], 2),
        ([2.0, 2.0, 2.0], True, [1, 2, 3], 2),  # of equals the earlier
        ([NAN, 1.0, NAN], False, [2, 1, 3], 1),
        ([NAN, NAN], True, [1, 2], 1),
    ],
)
def test_the_best_and_the_wait_for_it(
    scores: list[float], higher: bool, ranked: list[int], waited: int
) -> None:
    made = history(*scores, higher=higher)
    assert [entry.update for entry in made.ranked()] == ranked
    assert made.waited() == waited
    assert (made.best().update if made.best() else None) == (ranked[0] if ranked else None)


def test_the_loss_chooses_among_scores_of_zero_and_only_among_those() -> None:
    made = History("bleu", True)
    for update, (bleu, loss) in enumerate([(0.0, 3.0), (0.0, 2.0), (0.0, NAN), (0.0, 2.5)], 1):
        made = made.add(update, {"bleu": bleu, "loss": loss})
    assert made.silent() and [one.update for one in made.ranked()] == [2, 4, 1, 3] and made.waited() == 2
    assert made.beats({"bleu": 0.0, "loss": 1.0}, {"bleu": 0.0, "loss": 2.0})
    found = made.add(5, {"bleu": 1.5, "loss": 9.0}).add(6, {"bleu": 1.5, "loss": 1.0})
    assert not found.silent() and [one.update for one in found.ranked()][:3] == [5, 6, 2]
    assert not history(0.0, 0.0).silent()  # no loss
    assert not history(0.0, 0.0, higher=False).silent()  # of an error, 0 is the best
    assert not made.until(1).silent()


def test_a_training_whose_metric_stays_zero_keeps_the_lowest_loss_and_says_so(tmp_path: Path) -> None:
    task, notes = Task(scores=[0.0] * 9), Notes()
    chosen = settings(metric="score", max_epochs=0, max_updates=6, validate_every=1, patience=2)
    outcome = train(task, tmp_path, chosen, quiet(tmp_path, notes))
    losses = [one.scores["loss"] for one in Checkpoints(tmp_path, print).index().validations]
    assert len(losses) == 6 and outcome.reason == "max_updates"  # patience did not end it
    assert outcome.best == 1 + losses.index(min(losses)) > 1
    (said,) = [one for one in notes.warnings if "score is 0" in one]
    assert "the lowest loss chooses" in said


def test_scores_go_through_a_file_as_they_are() -> None:
    made = history(0.1 + 0.2, NAN, math.inf)
    text = json.dumps(made.to_json(), allow_nan=False)
    read = History("score", True).with_saved(jsonfile.decode(text, list[SavedValidation]))
    assert read.score(read.entries[0]) == 0.1 + 0.2
    assert math.isnan(read.score(read.entries[1])) and math.isnan(read.score(read.entries[2]))
    assert [entry.update for entry in read.until(2).entries] == [1, 2]


def test_the_mean_equals_numpy() -> None:
    chance = np.random.default_rng(5)
    sets = [{"w": chance.standard_normal((3, 2)).astype(np.float32), "count": np.array(n)} for n in range(7)]
    got = mean_weights({k: torch.from_numpy(v) for k, v in one.items()} for one in sets)
    np.testing.assert_allclose(got["w"], np.mean([s["w"] for s in sets], 0, dtype=np.float64), rtol=1e-6)
    assert got["count"].item() == 6
    assert got["w"].dtype == torch.float32


@pytest.mark.parametrize(
    ("score", "taken", "of", "updates"),
    [
        (0.95, True, "best", [2, 3]),
        (0.95, True, "last", [3, 4]),
        (0.2, False, "best", [2, 3]),
        (NAN, False, "last", [3, 4]),
    ],
)
def test_the_mean_is_taken_only_if_it_scores_better(
    tmp_path: Path, score: float, taken: bool, of: str, updates: list[int]
) -> None:
    task, notes = Task(scores=[0.1, 0.9, 0.8, 0.3, score]), Notes()
    chosen = settings(
        metric="score", max_epochs=0, max_updates=4, validate_every=1, average=2, average_of=of, keep_best=2
    )
    outcome = train(task, tmp_path, chosen, quiet(tmp_path, notes))
    checkpoints = Checkpoints(tmp_path, print)
    mean = mean_weights(checkpoints.load(update).weights for update in updates)
    best = checkpoints.load(2).weights
    model = weights.load(tmp_path / "model.safetensors")
    expected = mean if taken else best
    assert all(torch.equal(model[name], expected[name]) for name in model)
    assert "output.weight" not in safetensors.torch.load((tmp_path / "model.safetensors").read_bytes())
    assert outcome.mean_of == (tuple(updates) if taken else ())
    assert outcome.scores["score"] == (score if taken else 0.9)
    said = f"the mean of updates {updates[0]}, {updates[1]}: "
    assert any(text.startswith(said) for text in notes.texts)
    assert any(("so it is" if taken else "not better than update 2, which is") in t for t in notes.texts)


def test_longer_training_keeps_the_mean_until_something_scores_better(tmp_path: Path) -> None:
    def go(updates: int, scores: list[float]) -> str:
        chosen = settings(
            metric="score", max_epochs=0, max_updates=updates, validate_every=1, average=2, keep_best=3
        )
        train(Task(scores=scores), tmp_path, chosen, quiet(tmp_path))
        return Checkpoints(tmp_path, print).published()

    assert go(2, [0.5, 0.6, 0.9]) == "1+2"
    assert go(3, [0.7, 0.1]) == "1+2"
    assert go(4, [0.95, 0.2]) == "4"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"max_epochs": 0}, "expected an end, got none; set one of max_updates"),
        ({"accumulate": 0}, r"training\.accumulate: .*got 0"),
        ({"clip_norm": -1.0}, r"training\.clip_norm: .*got -1\.0"),
        ({"precision": "float16"}, r"training\.precision: .*got 'float16'"),
        ({"average": 5}, r"average: expected at most keep_best \(3\), got 5"),
        ({"non_finite": "ignore"}, "one of raise, skip, roll_back"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        settings(**changes)


def test_defaults_need_only_an_end() -> None:
    assert TrainingSettings(max_updates=1).loss == "per_token"


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="toaster"):
        devices.choose("toaster")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="torch sees no GPU"):
            devices.choose("cuda")
        assert devices.choose("auto") == torch.device("cpu")


def test_a_gpu_keeps_float32_and_its_attention_builds_no_plans() -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled(), torch.backends.cudnn.allow_tf32
    try:
        torch.backends.cuda.enable_cudnn_sdp(True)
        torch.backends.cudnn.set_flags(_allow_tf32=True)
        devices.with_settings(torch.device("cpu"))
        assert torch.backends.cuda.cudnn_sdp_enabled() and torch.backends.cudnn.allow_tf32
        devices.with_settings(torch.device("cuda"))
        assert not torch.backends.cuda.cudnn_sdp_enabled() and not torch.backends.cudnn.allow_tf32
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before[0])
        torch.backends.cudnn.set_flags(_allow_tf32=before[1])


def test_auto_takes_bfloat16_only_where_it_is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    for fast in (False, True):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda fast=fast: fast)
        assert devices.uses_bfloat16("auto", cpu) is fast
    assert not devices.uses_bfloat16("float32", cpu)
    assert devices.uses_bfloat16("bfloat16", cpu)
    monkeypatch.delattr(torch.cpu, "_is_amx_tile_supported")
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert not devices.fast_bfloat16(cpu)


def test_data_without_an_example_is_refused(tmp_path: Path) -> None:
    class Empty(Task):
        def plan(self, seed: int) -> Any:
            made = super().plan(seed)
            made.epoch = lambda number: []
            return made

    with pytest.raises(DataError, match="at least one example"):
        train(Empty(), tmp_path, settings(), quiet(tmp_path))


CYCLES = settings(max_updates=11, max_epochs=0, validate_every=100, schedule=CosineRestarts(cycles=3))


def kept(run: Path) -> dict[str, dict[str, object]]:
    return {one.stem: dict(weights.load(one)) for one in sorted((run / "cycles").iterdir())}


def test_a_cycle_begins_near_1_and_ends_at_the_floor() -> None:
    part = CosineRestarts(cycles=3, warmup=2, floor=0.1)
    factors = [part.factor(update, update / 14, {}) for update in range(1, 15)]
    cycle = [0.1 + 0.9 * (1 + math.cos(math.pi * step / 4)) / 2 for step in (1, 2, 3, 4)]
    assert factors == pytest.approx([0.5, 1, *cycle, *cycle, *cycle])
    ended = [part.cycles_ended(update, update / 14) for update in range(1, 15)]
    assert ended == [0] * 5 + [1] * 4 + [2] * 4 + [3]
    one = CosineRestarts(cycles=1)
    assert [one.factor(n, n / 7, {}) for n in range(8)] == [
        CosineSchedule().factor(n, n / 7, {}) for n in range(8)
    ]
    assert [part.cycles_ended(n, 0.0) for n in (0, 50)] == [0, 0]  # no planned end


def test_each_cycle_ends_with_a_validation_and_its_weights_are_kept(tmp_path: Path) -> None:
    train(Task(), tmp_path, CYCLES, quiet(tmp_path))
    whole = kept(tmp_path)
    assert list(whole) == ["step-00000004", "step-00000008", "step-00000011"]
    assert weights.metadata(tmp_path / "cycles" / "step-00000008.safetensors")["update"] == "8"
    last = weights.load(tmp_path / "checkpoints" / "step-00000011" / "model.safetensors")
    assert same(whole["step-00000011"], last)  # type: ignore[arg-type]
    for number, stop in enumerate((terminate, crash)):
        run = tmp_path / str(number)
        for at in (3, 4, 8):
            with suppress(Crash):
                train(Task(on_batch=stop(at)), run, CYCLES, quiet(run))
        train(Task(), run, CYCLES, quiet(run))
        again = kept(run)
        assert list(again) == list(whole)
        assert all(same(again[name], whole[name]) for name in whole)  # type: ignore[arg-type]
