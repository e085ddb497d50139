"""Advice for a model that repeats itself or is worse than a baseline: train longer, if that may help.

Read next: train.py and evaluate.py, which print it.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import weft.tasks
from weft import rooms
from weft.commands.options import plugin_words
from weft.commands.program import typed
from weft.tasks.init import Init
from weft.wording import plural
from weft.words import words

if TYPE_CHECKING:
    from weft.train.history import History
    from weft.train.settings import TrainingSettings

ENDS = ("max_updates", "max_epochs", "max_tokens", "max_minutes", "max_cpu_minutes")
TIMES = 5
UPDATES = 1000  # minimum that we suggest
EARLY = 0.75  # what was best before this share of the updates is not improving any more
SHOWN = 40  # characters of an output
LITTLE = 0.6  # a share of distinct words below this fraction of the usual one counts as repetition


def degenerate(samples: Sequence[Any]) -> str:
    """What is wrong with at least half of the outputs (empty or repetitive); "" if nothing is.

    Example:
        >>> from weft.tasks.evaluation import Sample
        >>> degenerate([Sample("Insert a row.", "Zeile einfügen.", "Row Row Row")])
        'the model repeats itself (Row Row Row)'
        >>> degenerate([Sample("tick tick tick tock", "tack tack tack tock", "tack tack tack tock")])
        ''
    """
    texts = [one for one in samples if hasattr(one, "output")]
    empty = [one for one in texts if one.reference and not one.output.strip()]
    again = [one.output for one in texts if _repeats(one.output, one.reference, one.source)]
    if not texts or 2 * len(empty + again) < len(texts):
        return ""
    if not again:
        return "most answers of the model are empty"
    return f"the model repeats itself ({again[0] if len(again[0]) <= SHOWN else again[0][:SHOWN] + '…'})"


def advice(why: str, run: Path, name: str, settings: "TrainingSettings", plugins: Sequence[str] = ()) -> str:
    """What to do about a wrong model: train longer if the validations were still improving."""
    from weft.train.checkpoints import Checkpoints
    from weft.train.history import History

    index = Checkpoints(run, lambda text: None).index()
    seen = History(index.metric, index.better == "higher").with_saved(index.validations)
    last = seen.entries[-1].update if seen.entries else 0
    if not last:
        return f"hint: {why}; it was solved without updates, so only other settings or more data can help"
    if cause := ended_early(seen):
        init: Any = rooms.get(weft.tasks, Init, name)  # None for a task of a plugin
        models = " or ".join(one.name for one in init.trial.candidates) if init and init.trial else ""
        others = models and f", or another model: weft init {name} with --model {models}"
        cure = f"Try more data, more dropout or a smaller model{others}."
        return f"hint: {why}; {cause}, so more updates would not help.\n{cure}"
    command, count = longer(run, settings, last, plugins), plural(last, "update")
    if not command:
        return f"hint: {why} after {count}; try another learning rate, a smaller model or more data"
    return f"hint: {why}; {count} may be too few.\nTo train further:\n  {command}"


def ended_early(seen: "History") -> str:
    """How the validations stopped improving well before the end of training; empty if they did not.

    Example:
        >>> from weft.train.history import History
        >>> seen = History("accuracy", True).add(10, {"loss": 0.5, "accuracy": 0.7})
        >>> ended_early(seen)
        ''
        >>> ended_early(seen.add(30, {"loss": 0.7, "accuracy": 0.7}).add(40, {"loss": 0.9, "accuracy": 0.8}))
        'the validation loss has risen since update 10 (0.5, at the end 0.9)'
    """
    last, best = seen.entries[-1], seen.best()
    scores = {entry.update: entry.scores.get("loss", math.nan) for entry in seen.entries}
    losses = {update: loss for update, loss in scores.items() if math.isfinite(loss)}
    lowest = min(losses, key=losses.__getitem__, default=last.update)
    if lowest < EARLY * last.update:
        ends = f"{losses[lowest]:.3g}, at the end {list(losses.values())[-1]:.3g}"
        return f"the validation loss has risen since update {lowest:,} ({ends})"
    if best is not None and best.update < EARLY * last.update:
        return f"the validation score, {seen.metric}, has not improved since update {best.update:,}"
    return ""


def longer(run: Path, settings: "TrainingSettings", updates: int, plugins: Sequence[str] = ()) -> str:
    """The command that trains a run for longer: five times its limits, at least a thousand updates.

    It is empty if only patience ends the training: more updates would not help.
    """
    times = max(TIMES, -(-UPDATES // max(1, updates)))
    ends = [
        f"training.{name}={getattr(settings, name) * times:g}" for name in ENDS if getattr(settings, name)
    ]
    words = "train", run / "recipe.yaml", "--run", run, *ends, *plugin_words(plugins)
    return typed(*words) if ends else ""


def _repeats(output: str, *others: str) -> bool:
    """Whether its share of distinct words is far below that of the reference and the source."""
    usual = min((_variety(other) for other in others if other), default=1.0)
    return len(words(output)) >= 3 and _variety(output) < LITTLE * usual


def _variety(text: str) -> float:
    found = words(text)
    return len(set(found)) / max(1, len(found))
