"""Cross-validation: train and test every fold of a recipe, and report one mean with an interval.

Read next: ../metrics/intervals.py, the interval; ../tasks/labels/splits.py, the folds.
"""

import math
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import signature
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from weft.config import read_recipe
from weft.config.recipe import at, difference
from weft.errors import ConfigError
from weft.metrics.intervals import MeanOfTrainings, mean_of
from weft.metrics.metric import MetricScore
from weft.metrics.scored import ScoreWithBaselines
from weft.run import open_run
from weft.run.loading import task_class
from weft.run.train import train_run
from weft.run.training import check_recipe
from weft.store import files, jsonfile
from weft.train.reporting import MetricsFile
from weft.train.resume import check_unchanged
from weft.tune.plan import QUIET


class Folds(NamedTuple):
    """A cross-validation that was checked."""

    recipe: Path
    given: Sequence[str]  # the user's overrides
    number: int  # of folds
    tested: Sequence[int]  # the folds that are tested; by time all but the oldest
    repeats: int  # number of times that everything is split
    folder: Path  # where the runs are
    plugins: Collection[str]  # packages that the recipe may name

    def run(self, repeat: int, fold: int) -> Path:
        """The run directory of a fold, both counted from 0: FOLDER/repeat-0/fold-3."""
        return self.folder / f"repeat-{repeat}" / f"fold-{fold}"

    def overrides(self, repeat: int, fold: int) -> list[str]:
        """The overrides of a fold; each repeat is split by another seed."""
        found = [*self.given, *QUIET, f"data.fold={fold}"]
        if self.repeats > 1:
            found.append(f"data.split_seed={repeat}")
        return found


class _Tested(jsonfile.Schema):
    scores: dict[str, float]
    baselines: dict[str, dict[str, float]]
    higher_is_better: dict[str, bool] = jsonfile.field(default_factory=dict)


def folds(
    recipe: Path, given: Sequence[str], folder: Path, *, repeats: int = 1, plugins: Collection[str] = ()
) -> Folds:
    """Check a recipe for cross-validation."""
    table = read_recipe(recipe, given)
    kind = task_class(table, plugins)
    if "folds" not in signature(kind.sections["data"]).parameters:
        name = table.value["task"]
        raise name.refuse(f"{name.value} has no folds; weft folds cross-validates classifiers and taggers")
    plain = table.plain()
    count, by_time = at(plain, ("data", "folds")), at(plain, ("data", "time"))
    if not isinstance(count, int) or count < 2:
        raise ConfigError(f"{recipe}: expected data.folds of at least 2, got {count or 0}; pass data.folds=5")
    if any(one.partition("=")[0].strip() == "data.fold" for one in given):
        raise ConfigError("data.fold: weft folds tests every fold; leave it out, or use weft train for one")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: expected a directory for the runs, got a file; choose another --folder")
    if by_time is not None and repeats > 1:
        raise ConfigError("--repeats: data.time allows only one split; leave it out")
    found = Folds(recipe, given, count, range(by_time is not None, count), repeats, folder, plugins)
    check_recipe(read_recipe(recipe, found.overrides(1, found.tested[0])), plugins=plugins)
    return found


def run_folds(plan: Folds, say: Callable[[str], None]) -> int:
    """Train and test every fold that has no result yet; returns 0, or the exit code of a signal."""
    for repeat in range(1, plan.repeats + 1):
        for fold in plan.tested:
            _check_same(plan, repeat, fold)
    check_unchanged(plan.folder, "this cross-validation", "--folder")
    for repeat in range(1, plan.repeats + 1):
        for fold in plan.tested:
            run = plan.run(repeat, fold)
            if not files.is_file(run.with_suffix(".json")):
                say(f"repeat {repeat} of {plan.repeats}, fold {fold} of {plan.number}")
                code = _run(plan, repeat, fold, say)
                if code:
                    return code
            shutil.rmtree(run / "checkpoints", ignore_errors=True)  # only now: a fold without scores resumes
    return 0


def _check_same(plan: Folds, repeat: int, fold: int) -> None:
    """Check that a fold that was trained before, or in part, has the recipe of this one."""
    run = plan.run(repeat, fold)
    begun = files.is_file(run.with_suffix(".json")) or files.is_dir(run / "checkpoints")
    if not begun or not files.is_file(run / "recipe.yaml"):
        return
    old = check_recipe(read_recipe(run / "recipe.yaml"), plugins=plan.plugins).plain
    new = check_recipe(read_recipe(plan.recipe, plan.overrides(repeat, fold)), plugins=plan.plugins).plain
    if changed := difference(old, new, ""):
        raise ConfigError(
            f"{run}: was trained with {changed}; remove {plan.folder} or choose another --folder"
        )


def _run(plan: Folds, repeat: int, fold: int, say: Callable[[str], None]) -> int:
    run = plan.run(repeat, fold)
    recipe = read_recipe(plan.recipe, plan.overrides(repeat, fold))
    checked, outcome = train_run(
        run, recipe, lambda _: MetricsFile(run / "metrics.jsonl"), plugins=plan.plugins
    )
    if outcome.exit_code:
        return outcome.exit_code
    opened = open_run(run, device=checked.settings.device, plugins=plan.plugins)
    tested = opened.pipeline.evaluate(opened.model).scores
    scores = {one.score.name: one.value for one in tested}
    baselines = {one.score.name: dict(one.baselines) for one in tested}
    higher = {one.score.name: one.score.higher_is_better for one in tested}
    found = {"scores": scores, "baselines": baselines, "higher_is_better": higher}
    files.replace(run.with_suffix(".json"), files.to_json(found))
    say(", ".join(f"{name} {value:.4g}" for name, value in scores.items()))
    return 0


def write_table(plan: Folds) -> list[str]:
    """Write folds.tsv, and return a line for each mean score and those of its baselines, and the verdict."""
    rows = {
        (repeat, fold): jsonfile.load(plan.run(repeat, fold).with_suffix(".json"), _Tested, "remove it")
        for repeat in range(1, plan.repeats + 1)
        for fold in plan.tested
    }
    first = next(iter(rows.values()))
    names = [name for name in first.scores if all(name in row.scores for row in rows.values())]
    lines = ["\t".join(["repeat", "fold", *names])]
    for (repeat, fold), row in rows.items():
        lines.append("\t".join([str(repeat), str(fold), *(f"{row.scores[name]:.6g}" for name in names)]))
    files.replace(plan.folder / "folds.tsv", "".join(f"{line}\n" for line in lines).encode())
    said, verdicts = [], []
    for name in names:
        scores = [row.scores[name] for row in rows.values()]
        baselines = _shared([row.baselines.get(name, {}) for row in rows.values()])
        said.append(f"{name} {_mean(plan, name, scores)}")
        said += [f"  baseline: {one} {_mean(plan, name, values)}" for one, values in baselines.items()]
        if baselines and name in first.higher_is_better:  # not of folds that an older version tested
            verdicts.append(_verdict(plan, name, scores, baselines, first.higher_is_better[name]))
    return said + verdicts[:1]


def _verdict(
    plan: Folds,
    name: str,
    scores: Sequence[float],
    baselines: Mapping[str, Sequence[float]],
    higher_is_better: bool,
) -> str:
    """Whether the mean is better than that of the best baseline, from the differences in each fold."""
    mean, means, apart = _mean(plan, name, scores), {}, {}
    for one, values in baselines.items():
        found = _mean(plan, "", [score - value for score, value in zip(scores, values, strict=True)])
        ends = (found.low, found.high) if found.repeats > 1 else (-math.inf, math.inf)
        means[one], apart[one] = fmean(values), (found.value, *ends)
    score = MetricScore(name, mean.value, "", mean.repeats, higher_is_better)
    if mean.known:
        score = score._replace(low=mean.low, high=mean.high)
    return ScoreWithBaselines(score, means, apart=apart).verdict()


def _shared(rows: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """The baselines that every fold has; those that chose different variants go without its name.

    Example:
        >>> _shared([{"counts (words)": 0.5, "last": 0.1}, {"counts (letters)": 0.7}])
        {'counts': [0.5, 0.7]}
    """
    found = {}
    for name in rows[0]:
        short = name.partition(" (")[0]
        alike = [[one for one in row if one == name] for row in rows]
        if not all(alike):
            alike = [[one for one in row if one.partition(" (")[0] == short] for row in rows]
        if all(len(one) == 1 for one in alike):
            label = name if all(one == [name] for one in alike) else short
            found[label] = [row[one] for row, (one,) in zip(rows, alike, strict=True)]
    return found


def _mean(plan: Folds, name: str, scores: Sequence[float]) -> MeanOfTrainings:
    return mean_of(scores, overlap=1 / (plan.number - 1), name=name)
