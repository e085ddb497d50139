"""Train the best trial, and the recipe as it is, with several seeds: is the better score more than luck?

Read next: report.py.
"""

import math
import shutil
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft import files, jsonfile
from weft.card import write_card
from weft.config import dump
from weft.errors import CheckpointError
from weft.run import begin, check
from weft.train.claim import claim
from weft.train.loop import train
from weft.train.reporting import MetricsFile
from weft.tune.plan import QUIET
from weft.tune.study import Study
from weft.tune.trial import Say

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The 97.5 % points of Student's t distribution with 1 to 9 degrees of freedom."""


class _Result(jsonfile.Form):
    score: float


class Mean(NamedTuple):
    """The mean of several seeds, with the ends of its 95 % interval."""

    value: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        """For example: 0.881 [0.872, 0.890], 3 seeds."""
        if self.seeds == 1:
            return f"{self.value:.4g}, 1 seed"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}], {self.seeds} seeds"


def mean_of(scores: Sequence[float]) -> Mean:
    """The mean of independent scores and Student's 95 % interval.

    Example:
        >>> str(mean_of([1.0, 2.0, 3.0]))
        '2 [-0.4843, 4.484], 3 seeds'
    """
    value, count = statistics.fmean(scores), len(scores)
    if count == 1:
        return Mean(value, value, value, 1)
    factor = STUDENT[min(count - 2, len(STUDENT) - 1)]
    half = factor * statistics.stdev(scores) / math.sqrt(count)
    return Mean(value, value - half, value + half, count)


def retrain(study: Study, seeds: int, say: Say) -> int:
    """Train the best trial and trial 0 with seeds 1 to `seeds`; processes share the work.

    Returns:
        0, or the exit code of a signal.
    """
    for number, seed in _jobs(study, seeds):
        run = study.plan.retrained(number, seed)
        if files.is_file(run.with_suffix(".json")):
            continue
        try:
            with claim(run.parent / f"lock-{seed}"):
                code = _train(study, number, seed, say)
        except CheckpointError as error:
            if "another process" not in str(error):
                raise
            continue
        if code:
            return code
    return 0


def retrained(study: Study, number: int, seeds: int) -> Mean | None:
    """The scores of a trial's seeds so far; None without one."""
    found = []
    for seed in range(1, seeds + 1):
        path = study.plan.retrained(number, seed).with_suffix(".json")
        if files.is_file(path):
            found.append(jsonfile.load(path, _Result, "remove it and run the same command").score)
    return mean_of(found) if found else None


def _jobs(study: Study, seeds: int) -> list[tuple[int, int]]:
    best = study.best()
    numbers = [] if best is None else list(dict.fromkeys((best.number, 0)))
    return [(number, seed) for seed in range(1, seeds + 1) for number in numbers]


def _train(study: Study, number: int, seed: int, say: Say) -> int:
    plan, run = study.plan, study.plan.retrained(number, seed)
    one: Any = study.trials()[number]
    more = (*QUIET, f"training.seed={seed}")
    begun = begin(run, plan.table(study.settings(one), *more), plugins=plan.plugins)
    say(f"trial {number} again, seed {seed}")
    outcome = train(begun.task, run, begun.settings, MetricsFile(run / "metrics.jsonl"))
    if outcome.exit_code:
        return outcome.exit_code
    write_card(run, begun, outcome)
    shutil.rmtree(run / "checkpoints", ignore_errors=True)
    whole = check(plan.table(study.settings(one), *more, tested=True), plugins=plan.plugins)
    files.replace(
        run / "recipe.yaml", dump(whole.plain).encode()
    )  # so that `weft evaluate` finds the test split
    score = outcome.scores[plan.metric]
    files.replace(run.with_suffix(".json"), files.to_json({"score": score}))
    say(f"trial {number} again, seed {seed}: {plan.metric} {score:.4g}")
    return 0
