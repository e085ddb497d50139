"""Advice for a training that was too short: repetitive samples, or a score below a baseline.

Read next: train.py and evaluate.py, which print it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.commands.program import typed
from weft.wording import plural
from weft.words import words

if TYPE_CHECKING:
    from weft.train.settings import TrainingSettings

ENDS = ("max_updates", "max_epochs", "max_tokens", "max_minutes", "max_cpu_minutes")
TIMES = 5
UPDATES = 1000  # minimum that we suggest
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


def longer(run: Path, settings: "TrainingSettings", updates: int, plugins: Sequence[str] = ()) -> str:
    """The command that trains a run for longer: five times its limits, at least a thousand updates.

    Returns:
        The command, or "" if only patience ends the training: more updates would not help.
    """
    times = max(TIMES, -(-UPDATES // max(1, updates)))
    ends = [
        f"training.{name}={getattr(settings, name) * times:g}" for name in ENDS if getattr(settings, name)
    ]
    trusted = [word for plugin in plugins for word in ("--plugin", plugin)]
    return typed("train", run / "recipe.yaml", "--run", run, *ends, *trusted) if ends else ""


def hint(why: str, updates: int, command: str) -> str:
    """The text to print."""
    count = plural(updates, "update")
    if not command:
        return f"hint: {why} after {count}; try another learning rate, a smaller model or more data"
    return f"hint: {why}; {count} may be too few.\nTo train further:\n  {command}"


def _repeats(output: str, *others: str) -> bool:
    """Whether its share of distinct words is far below that of the reference and the source."""
    usual = min((_variety(other) for other in others if other), default=1.0)
    return len(words(output)) >= 3 and _variety(output) < LITTLE * usual


def _variety(text: str) -> float:
    found = words(text)
    return len(set(found)) / max(1, len(found))
