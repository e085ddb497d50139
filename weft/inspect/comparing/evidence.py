"""What a paired test needs of a run: a metric's numbers for each item of the test split, in one order.

Read next: measured.py; ../../metrics/bootstrap.py, which draws the items anew.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.data.parallel import complete
from weft.metrics.accuracy import Accuracy
from weft.metrics.bleu import Bleu
from weft.metrics.metric import Metric
from weft.metrics.tags import TagAccuracy
from weft.run import Opened
from weft.tasks.memories.evaluation import measure


class Mean(Metric):
    """The mean of a number an item; statistics are [N, 2], the number and 1.

    Args:
        name: of the number.
        higher_is_better: of two means.
    """

    def __init__(self, name: str, *, higher_is_better: bool) -> None:
        self.name, self.higher_is_better = name, higher_is_better  # type: ignore[misc]

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Of lines that are numbers."""
        return np.array([[float(line), 1.0] for line in hypotheses])

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""
        return totals[..., 0] / totals[..., 1]

    def signature(self) -> str:
        """What a row is."""
        return "mean:item"


class Evidence(NamedTuple):
    """A metric's statistics on the items of a split."""

    metric: Metric
    statistics: np.ndarray  # [N, K]
    items: str  # a fingerprint of the items; only runs of the same ones are tested against each other


def evidence(opened: Opened, evaluation: Any) -> Evidence | None:
    """Of an evaluation on the test split; None of a task that has nothing an item."""
    task, outputs = opened.task, evaluation.outputs
    if opened.name == "translate":
        pairs = list(task.data.open("test"))
        kept = complete([pair.source for pair in pairs], [pair.target for pair in pairs])
        references, outputs = [pairs[n].target for n in kept], [outputs[n] for n in kept]
        bleu = Bleu()
        return Evidence(bleu, bleu.statistics(outputs, references, None), _print(references))
    if opened.name == "classify":
        found = list(task.data.texts("test"))
        labels = [one.label for one in found]
        return Evidence(
            Accuracy(), Accuracy().statistics(outputs, labels), _print([one.text for one in found])
        )
    if opened.name == "tag":
        sentences = list(task.data.sentences("test"))
        tagger = task.predictor(opened.model)
        answers = [" ".join(one.tags) for one in tagger.tag([sentence.forms for sentence in sentences])]
        gold = [" ".join(sentence.tags or []) for sentence in sentences]
        return Evidence(TagAccuracy(), TagAccuracy().statistics(answers, gold, None), _print(gold))
    if opened.name == "memory":
        adding = task.data.problem == "adding"
        measured = measure(task.predictor(opened.model), "test", task.data.test)
        values = measured.errors if adding else measured.right
        mean = Mean("MSE" if adding else "accuracy", higher_is_better=not adding)
        return Evidence(mean, np.stack([values, np.ones(len(values))], 1), _print(measured.references))
    if opened.name == "language":
        values = -np.asarray(evaluation.line_logp, dtype=np.float64)
        items = _print([evaluation.title, str(evaluation.words), str(evaluation.characters)])
        mean = Mean("nats a line", higher_is_better=False)
        return Evidence(mean, np.stack([values, np.ones(len(values))], 1), items)
    return None


def _print(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:16]
