"""The result of a validation: scores and a few samples."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

from weft.metrics.compared import ComparedOutputs
from weft.metrics.metric import Metric
from weft.nn.heads.head import Loss
from weft.wording import plural


class Sample(NamedTuple):
    """A validation example and the model's output, as text."""

    source: str
    reference: str
    output: str


class Validation(NamedTuple):
    """The current scores of the model.

    Fields:
        scores: by name.
        samples: examples with the model's outputs.
        compared: outputs and references, for each language pair if there are several; empty if the task
            does not compare texts.
        notes: sentences about examples that could not be scored.
    """

    scores: dict[str, float]
    samples: Sequence[Sample]
    compared: Sequence[ComparedOutputs] = ()
    notes: Sequence[str] = ()

    def with_metrics(self, metrics: Iterable[Metric]) -> "Validation":
        """This validation with the scores of further metrics, averaged over `compared`."""
        more = {one.key: float(np.mean([each.value(one) for each in self.compared])) for one in metrics}
        return self._replace(scores={**self.scores, **more})


class _Batch(Protocol):
    def to(self, device: torch.device) -> Any:
        """The batch on a device."""


def mean_loss(model: nn.Module, batches: Iterable[_Batch]) -> float:
    """The model's loss on all batches together, in nats per item.

    Args:
        model: in evaluation mode; its `loss` takes a batch.
        batches: on any device; each is read once.
    """
    device = next(model.parameters()).device
    total = count = 0.0
    with torch.no_grad():
        for batch in batches:
            loss: Loss = model.loss(batch.to(device))  # type: ignore[operator]
            total, count = total + float(loss.total), count + float(loss.count)
    return total / max(1.0, count)


def first(notes: Sequence[str], shown: int = 3) -> list[str]:
    """The first notes, and the number of the others.

    Example:
        >>> first(["a", "b", "c", "d", "e"])
        ['a', 'b', 'c', 'and 2 more validation examples']
    """
    more = len(notes) - shown
    return [*notes[:shown], *([f"and {plural(more, 'more validation example')}"] if more > 0 else [])]


def samples_of(count: int, shown: int = 3) -> list[int]:
    """The numbers of the validation examples to show as samples; each validation shows others.

    Training seeds torch's generator before each validation, so a repeated validation shows the same samples.
    The state of that generator is unchanged.

    Args:
        count: number of examples to choose from.
        shown: number of samples wanted.

    Returns:
        At most `shown` different numbers below `count`, in ascending order.
    """
    chance = np.random.default_rng(torch.initial_seed() % 2**63)
    return sorted(chance.choice(count, min(count, shown), replace=False).tolist())
