"""Train the best trial, and the recipe as it is, with several seeds: is the better score more than luck?

Read next: report.py.
"""

import shutil

from weft.config import Table, dump, read_recipe
from weft.errors import CheckpointError
from weft.metrics.trainings import MeanOfTrainings, mean_of
from weft.run.card import write_card
from weft.run.training import CheckedRecipe, begin_run, check_recipe, completed
from weft.store import files, jsonfile
from weft.store.locks import lock
from weft.train.loop import train
from weft.train.reporting import MetricsFile
from weft.tune.plan import QUIET
from weft.tune.study import Study
from weft.tune.trial import Say


class _Result(jsonfile.Schema):
    score: float


def retrain(study: Study, seeds: int, say: Say) -> int:
    """Train the best trial and trial 0 with seeds 1 to `seeds`; processes share the work.

    Returns:
        0, or the exit code of a signal.
    """
    for number, seed in _jobs(study, seeds):
        run = study.plan.retrained(number, seed)
        try:
            with lock(run.parent / f"lock-{seed}"):
                _remove_other(study, number, seed)
                done = files.is_file(run.with_suffix(".json"))
                code = 0 if done else _train(study, number, seed, say)
                if not code:
                    _finish(study, number, seed)
        except CheckpointError as error:
            if "another process" not in str(error):
                raise
            continue
        if code:
            return code
    return 0


def retrained(study: Study, number: int, seeds: int) -> MeanOfTrainings | None:
    """The scores of a trial's seeds so far; None without one."""
    found = []
    for seed in range(1, seeds + 1):
        path = study.plan.retrained(number, seed).with_suffix(".json")
        if files.is_file(path):
            found.append(jsonfile.load(path, _Result, "remove it and run the same command").score)
    return mean_of(found, name=study.plan.metric) if found else None


def _jobs(study: Study, seeds: int) -> list[tuple[int, int]]:
    best = study.best()
    numbers = [] if best is None else list(dict.fromkeys((best.number, 0)))
    return [(number, seed) for seed in range(1, seeds + 1) for number in numbers]


def _remove_other(study: Study, number: int, seed: int) -> None:
    """Remove a training of an earlier study in this folder, whose trial of this number had other settings."""
    plan, run = study.plan, study.plan.retrained(number, seed)
    if not files.is_file(run / "recipe.yaml"):
        return
    old = completed(read_recipe(run / "recipe.yaml"), plan.plugins)
    if all(old != _checked(study, number, seed, tested=tested).plain for tested in (True, False)):
        run.with_suffix(".json").unlink(missing_ok=True)
        files.remove_directory(run)


def _train(study: Study, number: int, seed: int, say: Say) -> int:
    plan, run = study.plan, study.plan.retrained(number, seed)
    checked = begin_run(run, _table(study, number, seed), plugins=plan.plugins)
    say(f"trial {number} again, seed {seed}")
    outcome = train(checked.task, run, checked.settings, MetricsFile(run / "metrics.jsonl"))
    if outcome.exit_code:
        return outcome.exit_code
    write_card(run, checked, outcome)
    score = outcome.scores[plan.metric]
    files.replace(run.with_suffix(".json"), files.to_json({"score": score}))
    say(f"trial {number} again, seed {seed}: {plan.metric} {score:.4g}")
    return 0


def _finish(study: Study, number: int, seed: int) -> None:
    """Remove the checkpoints of a training with a score, and name the test split in its recipe."""
    run = study.plan.retrained(number, seed)
    shutil.rmtree(run / "checkpoints", ignore_errors=True)
    recipe, whole = run / "recipe.yaml", _checked(study, number, seed, tested=True)
    content = dump(whole.plain).encode()
    if files.is_file(recipe) and recipe.read_bytes() != content:
        files.replace(recipe, content)


def _table(study: Study, number: int, seed: int, *, tested: bool = False) -> Table:
    settings = study.settings(study.trials()[number])
    return study.plan.table(settings, *QUIET, f"training.seed={seed}", tested=tested)


def _checked(study: Study, number: int, seed: int, *, tested: bool) -> CheckedRecipe:
    return check_recipe(_table(study, number, seed, tested=tested), plugins=study.plan.plugins)
