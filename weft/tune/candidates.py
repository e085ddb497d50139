"""Try the models of a task before a recipe is written, and keep the simplest that none is proven to beat.

Each candidate is the recipe that `weft init` writes for it, trained as `weft train` does, and scored on the
validation part. A later candidate takes the place of a simpler one only if the 95 % interval of their paired
difference excludes 0, and is not tried after one that makes no mistake. The test part is not read, and
nothing depends on a clock: a long training is shortened by its updates. Read next: ../tasks/init.py,
`Trial`, which tasks declare; ../metrics/intervals.py.
"""

import math
import re
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weft.config import Table, dump, read_recipe
from weft.config.recipe import at
from weft.errors import ConfigError, DataError, WeftError
from weft.metrics.intervals import difference_interval
from weft.metrics.scored import ScoreWithBaselines, fingerprint
from weft.run import open_run
from weft.run.train import train_run
from weft.run.training import CheckedRecipe, begin_run, check_recipe
from weft.store import files
from weft.tasks.init import ModelCandidate, Trial
from weft.train.reporting import Reporter
from weft.train.trackers import open_report
from weft.tune.plan import TEST

Say = Callable[[str], None]


class CandidateScore(NamedTuple):
    """A candidate that was trained, and its score on the validation part."""

    name: str
    score: ScoreWithBaselines
    cpu_seconds: float
    run: Path
    cut: str = ""  # how its training was shortened

    def against(self, simpler: "CandidateScore") -> tuple[float, float, float]:
        """Its score minus that of a simpler one, with the 95 % interval of the difference."""
        own, other = self.score, simpler.score
        value = own.value - other.value
        if (
            own.metric is None
            or own.statistics is None
            or other.statistics is None
            or own.items != other.items
        ):
            return value, -math.inf, math.inf
        return value, *difference_interval(own.metric, other.statistics, own.statistics)

    @property
    def is_perfect(self) -> bool:
        """Whether no other candidate can be better."""
        return self.score.metric is not None and self.score.value == self.score.metric.perfect

    def beats(self, simpler: "CandidateScore") -> bool:
        """Whether it is better, and not by chance."""
        _, low, high = self.against(simpler)
        return bool(low > 0 if self.score.score.higher_is_better else high < 0)


class ModelChoice(NamedTuple):
    """What was tried, the simplest first, and the one that is kept."""

    tried: Sequence[CandidateScore]
    kept: CandidateScore

    def table(self, *, seconds: bool = False) -> list[str]:
        """The scores of the candidates and of baselines; with the seconds, which differ from run to run."""
        first = self.tried[0].score
        rows = [(one.name, _shown(one.score), self._remark(one, seconds=seconds)) for one in self.tried]
        for name, value in first.baselines.items():
            rows.append((name, f"{value:.{first.score.digits}f}", "a baseline"))
        names, scores = (max(len(row[column]) for row in rows) for column in (0, 1))
        items = 0 if first.statistics is None else len(first.statistics)
        better = "higher" if first.score.higher_is_better else "lower"
        return [
            f"tried on the validation part ({first.score.name}, {better} is better, {items:,} items):",
            *(f"  {name:<{names}}  {score:<{scores}}  {remark}".rstrip() for name, score, remark in rows),
        ]

    def _remark(self, one: CandidateScore, *, seconds: bool) -> str:
        digits, parts = one.score.score.digits, [f"{one.cpu_seconds:.0f} CPU s"] if seconds else []
        if one is not self.tried[0]:
            value, low, high = one.against(self.tried[0])
            ends = f" [{low:+.{digits}f}, {high:+.{digits}f}]" if math.isfinite(low) else ""
            parts.append(f"{value:+.{digits}f}{ends} against {self.tried[0].name}")
        return ", ".join([*parts, *filter(None, [one.cut]), *(["kept"] if one is self.kept else [])])


def _shown(score: ScoreWithBaselines) -> str:
    digits, own = score.score.digits, score.score
    ends = "" if own.low is None or own.high is None else f" [{own.low:.{digits}f}, {own.high:.{digits}f}]"
    return f"{own.value:.{digits}f}{ends}"


class ShownUpdates(Reporter):
    """Shows how far a training is, and nothing that it says."""

    def said(self, text: str) -> None:
        pass

    def progress(self, what: str, done: float, total: float | None = None) -> None:
        pass

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        pass


def take_over(tried: Path, run: Path, recipe: Table, *, plugins: Collection[str] = ()) -> bool:
    """Move a trial's run to a new one if its recipe trains the same model; whether it did."""
    new = check_recipe(recipe, plugins=plugins).plain
    old = check_recipe(read_recipe(tried / "recipe.yaml"), plugins=plugins).plain
    old["training"]["refit"] = new["training"]["refit"]  # the same training, then another
    if new["training"]["max_updates"] is None:
        old["training"]["max_updates"] = None  # which did not end it
    old["data"][TEST[1]] = new["data"].get(TEST[1])
    old["decoding"] = new.get("decoding")
    if old != {"decoding": None, **new}:
        return False
    for file in tried.iterdir():
        shutil.move(file, run / file.name)
    files.replace(run / "recipe.yaml", dump(new).encode())
    return True


def choose(
    trial: Trial,
    recipes: Mapping[str, str],
    folder: Path,
    *,
    say: Say,
    screen: Callable[[], Reporter] = Reporter,
    plugins: Collection[str] = (),
) -> ModelChoice:
    """Train and score the candidates, whose recipes are given as text, and choose one; all that were tried.

    Their runs are in `folder`. Ctrl-C ends a training, and its best model so far counts.

    Raises:
        ConfigError: no candidate could be trained.
        DataError: a candidate could not read what its option names.
    """

    def report(checked: CheckedRecipe) -> Reporter:
        return open_report(run, checked.settings.trackers, checked.plain, ShownUpdates(screen()))

    tried: list[CandidateScore] = []
    stopped, why = False, ""
    for candidate in trial.candidates:
        begun = time.process_time()
        try:
            run, begin = _run_of(candidate, recipes[candidate.name], folder)
            same = next((one for one in tried if one.run == run), None)
            cut, trained = same.cut if same else "", same is not None
            if trained:
                begin_run(run, begin, plugins=plugins)
            elif best := next((one for one in tried if one.is_perfect), None):
                say(f"{candidate.name}: not tried, as {best.name} makes no mistake on the validation part")
            elif not stopped:
                say(f"trying {candidate.name}: {candidate.about}; Ctrl-C ends the trial")
                outcome = train_run(run, begin, report, plugins=plugins).outcome
                stopped = outcome.exit_code != 0
                trained = (run / "model.safetensors").exists()
                how = CUT.get(outcome.reason)
                cut = f"{how} after {outcome.update:,} updates" if how else ""
            if trained:
                opened = open_run(run, plugins=plugins)
                score = opened.pipeline.evaluate(opened.model, split="valid").used
                tried.append(CandidateScore(candidate.name, score, time.process_time() - begun, run, cut))
        except KeyboardInterrupt:
            stopped = True
        except WeftError as error:
            if candidate.needs:  # which the user gave
                place = rf"^{re.escape(str(folder / candidate.name))}\.yaml:\d+: "
                raise DataError(f"--{candidate.needs}: {re.sub(place, '', str(error))}") from error
            why = f"{candidate.name}: {error}"
            say(why)
    if not tried:
        raise ConfigError(why or "stopped")
    kept = tried[0]
    for one in tried[1:]:
        kept = one if one.beats(kept) else kept
    return ModelChoice(tried, kept)


CUT = {"max_updates": "ended", "interrupted": "stopped"}
"""Reasons why a training did not reach the end of its recipe, in words."""


def _run_of(candidate: ModelCandidate, recipe: str, folder: Path) -> tuple[Path, Table]:
    """The run directory and the recipe of a candidate; those that only answer differently share a run."""
    file = folder / f"{candidate.name}.yaml"
    file.write_text(recipe, "utf-8")
    table = read_recipe(file, _changes(read_recipe(file).plain(), candidate))
    learnt = {name: section for name, section in table.plain().items() if name != "decoding"}
    return folder / fingerprint([dump(learnt)]), table


def _changes(plain: Mapping[str, Any], candidate: ModelCandidate) -> list[str]:
    """What a trial changes in a recipe."""
    found = ["training.refit=false"]  # as its validation examples are not held out
    if isinstance(at(plain, TEST), str):
        found.append(f"{'.'.join(TEST)}=null")
    planned = at(plain, ("training", "max_updates")) or math.inf
    if candidate.updates and candidate.updates < planned:
        found.append(f"training.max_updates={candidate.updates}")
    return found
