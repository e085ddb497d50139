"""Try search settings on the best trial's model: they change its answers, not its training.

Settings are tried one after the other, each with the best values found so far. Read next: report.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.config.recipe import at
from weft.run import open_run
from weft.store import files, jsonfile
from weft.tune import space as spaces
from weft.tune.plan import SearchPlan
from weft.tune.study import Study
from weft.tune.trial import Say


class DecodingTrials(jsonfile.Schema):
    """The scores of search settings on the validation part, by the settings as overrides."""

    metric: str = ""
    higher: bool = True
    scores: dict[str, float] = jsonfile.field(default_factory=dict)


def search_decoding(study: Study, say: Say) -> None:
    """Score the search settings with the best trial's model; settings are scored only once."""
    plan, best = study.plan, study.best()
    run = None if best is None else run_of(plan, best.number)
    if run is None or not plan.decoding:
        return
    tried = tried_of(run)
    settings = {name: at(plan.plain, tuple(name.split("."))) for name in plan.decoding}
    for name, one in plan.decoding.items():
        for value in dict.fromkeys((settings[name], *one.values)):
            if key(other := settings | {name: value}) not in tried.scores:
                tried = _scored(plan, run, other, tried)
                files.replace(_kept(run), files.to_json(jsonfile.plain(tried)))
                say(f"{key(other)}: {tried.metric} {tried.scores[key(other)]:.4g}")
        settings = best_of(plan, tried, settings, name)


def best_decoding(plan: SearchPlan, number: int) -> tuple[dict[str, Any], str]:
    """The best settings that were tried for a trial, those that differ from the recipe's; and a sentence."""
    run = run_of(plan, number)
    tried = DecodingTrials() if run is None else tried_of(run)
    own = {name: at(plan.plain, tuple(name.split("."))) for name in plan.decoding}
    if key(own) not in tried.scores:
        return {}, ""
    settings = own
    for name in plan.decoding:
        settings = best_of(plan, tried, settings, name)
    said = f"search settings of trial {number}, validation {tried.metric}: {tried.scores[key(own)]:.4g} "
    if settings == own:
        return {}, f"{said}as in the recipe; no others were better"
    said += f"as in the recipe, {tried.scores[key(settings)]:.4g} with {key(settings)}"
    return {name: value for name, value in settings.items() if value != own[name]}, said


def best_of(
    plan: SearchPlan, tried: DecodingTrials, settings: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """The settings with the best value of one of them; ties keep the value that they have."""
    found = dict(settings)
    for value in plan.decoding[name].values:
        score = tried.scores.get(key({**settings, name: value}))
        now = tried.scores[key(found)]
        if score is not None and (score > now if tried.higher else score < now):
            found[name] = value
    return found


def key(settings: Mapping[str, Any]) -> str:
    """Settings as one text.

    Example:
        >>> key({"decoding.beam": 5, "decoding.length_penalty": 0.6})
        'decoding.beam=5 decoding.length_penalty=0.6'
    """
    return " ".join(spaces.overrides(settings))


def run_of(plan: SearchPlan, number: int) -> Path | None:
    """The first model of a trial: trained again, or else by the search; None if it is on another machine."""
    runs = plan.retrained(number, 1), plan.trial(number)
    return next((run for run in runs if files.is_file(run / "model.safetensors")), None)


def tried_of(run: Path) -> DecodingTrials:
    """What was tried with a model."""
    path = _kept(run)
    return (
        jsonfile.load(path, DecodingTrials, "remove it and run the same command")
        if path.is_file()
        else DecodingTrials()
    )


def _kept(run: Path) -> Path:
    return run / "decoding.json"


def _scored(
    plan: SearchPlan, run: Path, settings: Mapping[str, Any], tried: DecodingTrials
) -> DecodingTrials:
    opened = open_run(run, plugins=plan.plugins, changes=[*plan.hidden(), *spaces.overrides(settings)])
    scores = opened.evaluate(split="valid").scores
    wanted = [one for one in scores if one.metric is not None and one.metric.key == plan.metric]
    found = (wanted or scores)[0]
    higher = found.metric is None or found.metric.higher_is_better
    return DecodingTrials(found.score.name, higher, tried.scores | {key(settings): found.value})
