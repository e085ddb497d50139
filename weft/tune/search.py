"""The search: train trials until time is up or there are enough of them. Read next: trial.py, report.py."""

import time
from typing import Any

from weft.errors import ConfigError
from weft.tune.study import Study
from weft.tune.trial import Say, remove_checkpoints, run_trial

FAILURES = 5
"""The search ends if so many trials in a row fail."""


def search(study: Study, *, minutes: float, trials: int, processes: int, say: Say) -> int:
    """Train trials in this process.

    Args:
        study: where trials come from; several processes may share it.
        minutes: wall-clock limit of the search, earlier starts included; 0 for none.
        trials: number of trials; 0 for no limit.
        processes: number of processes that search at the same time.
        say: receives progress lines.

    Returns:
        0, or the exit code of a signal.

    Raises:
        ConfigError: the recipe does not work, or no trial does.
    """
    for one in study.trials():
        if one.state.is_finished():  # a process was killed before it had tidied up
            remove_checkpoints(study, one.number)
    left = 60 * minutes - study.seconds() / processes if minutes else float("inf")
    deadline = time.monotonic() + left
    while time.monotonic() < deadline:
        with study.next(trials) as trial:
            if trial is None:
                break
            code = run_trial(study, trial, deadline, say)
        if code:
            return code
        _check_failures(study)
    return 0


def _check_failures(study: Study) -> None:
    last: list[Any] = [one for one in study.trials() if one.state.is_finished()][-FAILURES:]
    if len(last) == FAILURES and all(study.score(one) is None for one in last):
        why = last[-1].user_attrs.get("why", "unknown")
        raise ConfigError(
            f"{study.plan.folder}: the last {FAILURES} trials failed, the last one with: {why}; "
            "narrow the space with --space"
        )
