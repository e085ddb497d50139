"""What a search leaves: its trials as a table and as pictures, and the winner as a commented recipe.

Read next: ../figures/charts.py, the pictures; ../config/text.py.
"""

import shutil
from typing import Any

from weft.config import Table, dump, parse, read_recipe
from weft.config.recipe import at
from weft.config.text import edited
from weft.figures.charts import history_figure, importance_figure
from weft.figures.picture import save
from weft.metrics.intervals import MeanOfTrainings, mean_of
from weft.run.train import train_run
from weft.run.training import CheckedRecipe, check_recipe, with_defaults
from weft.store import files, jsonfile
from weft.store.run_directory import LockedError, lock
from weft.train.reporting import MetricsFile
from weft.tune import plan as plans
from weft.tune import space as spaces
from weft.tune.decoding import best_decoding
from weft.tune.plan import QUIET
from weft.tune.study import Study
from weft.tune.trial import Say
from weft.wording import plural


def write_report(study: Study, seeds: int) -> list[str]:
    """Write trials.tsv, the pictures and best.yaml; return sentences about the winner."""
    folder, metric = study.plan.folder, study.plan.metric
    trials = study.trials()
    files.replace(folder / "trials.tsv", table(study).encode())
    best = study.best()
    if best is None:
        return ["no trial has reached a validation yet; the same command with more --minutes resumes"]
    scored = [(one.number, study.score(one), one.state.name == "COMPLETE") for one in trials]
    points = [(number, score, whole) for number, score, whole in scored if score is not None]
    save(history_figure(points, metric=metric, higher=study.plan.higher), folder / "history.png")
    importance = study.importance()
    if importance:
        picture = importance_figure(importance, metric=metric, trials=len(study.whole()))
        save(picture, folder / "importance.png")
    searched, said = best_decoding(study.plan, best.number)
    told = [*verdict(study, best, seeds), *([said] if said else [])]
    files.replace(folder / "best.yaml", best_recipe(study, study.settings(best) | searched, told).encode())
    return [*told, f"its recipe: {folder / 'best.yaml'}; all trials: {folder / 'trials.tsv'}"]


def table(study: Study) -> str:
    """One line per trial: number, state, score, minutes, why it ended, and its parameters."""
    names = list(study.plan.space)
    names += [name + spaces.LAYERS for name, one in study.plan.space.items() if one.layers]
    rows = [["trial", "state", study.plan.metric, "minutes", "why", *names]]
    for one in study.trials():
        score, seconds = study.score(one), one.user_attrs.get("seconds", 0.0)
        why = " ".join(str(one.user_attrs.get("why", "")).split())
        shown = ["" if score is None else f"{score:.6g}", f"{seconds / 60:.2f}", why]
        rows.append([str(one.number), one.state.name.lower(), *shown, *(_cell(one, name) for name in names)])
    return "".join("\t".join(row) + "\n" for row in rows)


def verdict(study: Study, best: Any, seeds: int) -> list[str]:
    """Sentences: the best trial and the recipe as it is, in the search and with several seeds."""
    plan, first = study.plan, study.trials()[0]
    own = study.score(first)
    said = [
        f"best of {plural(len(study.trials()), 'trial')} by validation {plan.metric}: trial {best.number}"
    ]
    if best.number == first.number:
        said[0] += f", the recipe as it is ({own:.4g}); no other trial was better"
    else:
        beside = "which has no score" if own is None else f"{own:.4g}"
        said[0] += f", {study.score(best):.4g}; the recipe as it is: {beside}"
    again, before = retrained(study, best.number, seeds), retrained(study, first.number, seeds)
    if again is not None:
        said.append(f"trial {best.number} retrained: {again}, {plural(again.repeats, 'seed')}")
    if again is not None and before is not None and best.number != first.number:
        said.append(
            f"the recipe as it is, retrained: {before}, {plural(before.repeats, 'seed')}; "
            f"{_compared(plan, again, before)}"
        )
    return said


def best_recipe(study: Study, settings: dict[str, Any], told: list[str]) -> str:
    """The recipe with the best settings and its own comments, and a header that says what changed."""
    plan, text = study.plan, plans.text_of(study.plan)
    tuned = check_recipe(plan.table(settings), plugins=plan.plugins).plain  # {use: max} says the same as max
    pairs = {name: [at(one, tuple(name.split("."))) for one in (plan.plain, tuned)] for name in settings}
    new = {name: settings[name] for name, (old, found) in pairs.items() if old != found}
    lines = ["Found by `weft tune`; to train it:", f"  weft train {plan.folder / 'best.yaml'}"]
    lines += [
        f"{name}: {spaces.written(one)} (was {spaces.written(pairs[name][0])})" for name, one in new.items()
    ]
    lines += [*told, "These are validation scores; the test split was not read."]
    if text.startswith("#"):
        lines.append("The header of the recipe as it was, with the scores of its own settings:")
    return "".join(f"# {line}\n" for line in lines) + edited(text, _given(study) | new)


def _given(study: Study) -> dict[str, Any]:
    """The user's overrides and the limit of a trial, as settings."""
    found = {}
    for override in (*study.plan.given, *study.plan.limits()):
        name, _, value = override.partition("=")
        found[name.strip()] = parse(value.strip(), "override").plain()
    return found


def _compared(plan: plans.SearchPlan, one: MeanOfTrainings, other: MeanOfTrainings) -> str:
    if not (one.known and other.known):
        return "more --seeds give intervals"
    apart = one.low > other.high if plan.higher else one.high < other.low
    if apart:
        return "the intervals do not overlap: better on this validation data"
    return "the intervals overlap, so the difference may be luck"


def _cell(one: Any, name: str) -> str:
    value = one.params.get(name, "")
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class _Result(jsonfile.Schema):
    score: float


def retrain(study: Study, seeds: int, say: Say) -> int:
    """Train the best trial and trial 0 with several seeds; returns 0, or the exit code of a signal."""
    for number, seed in _jobs(study, seeds):
        run = study.plan.retrained(number, seed)
        try:
            with lock(run.parent / f"lock-{seed}"):
                _remove_other(study, number, seed)
                done = files.is_file(run.with_suffix(".json"))
                code = 0 if done else _train(study, number, seed, say)
                if not code:
                    _finish(study, number, seed)
        except LockedError:
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
    old = with_defaults(read_recipe(run / "recipe.yaml"), plan.plugins)
    if all(old != _checked(study, number, seed, tested=tested).plain for tested in (True, False)):
        run.with_suffix(".json").unlink(missing_ok=True)
        files.remove_directory(run)


def _train(study: Study, number: int, seed: int, say: Say) -> int:
    plan, run = study.plan, study.plan.retrained(number, seed)
    say(f"trial {number} again, seed {seed}")
    recipe, report = _table(study, number, seed), MetricsFile(run / "metrics.jsonl")
    _, outcome = train_run(run, recipe, lambda _: report, plugins=plan.plugins)
    if outcome.exit_code:
        return outcome.exit_code
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
