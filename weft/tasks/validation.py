"""What a validation gives: scores, and a few samples for the eye."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

from weft.metrics.compared import Compared
from weft.metrics.metric import Metric
from weft.nn.heads.head import Loss


class Sample(NamedTuple):
    """An example of the validation data and what the model makes of it, as text."""

    source: str
    reference: str
    output: str


class Validation(NamedTuple):
    """How good the model is now.

    Fields:
        scores: by name.
        samples: examples with the model's outputs.
        compared: outputs and references, of each language pair where there are several; empty where the
            task compares no texts.
    """

    scores: dict[str, float]
    samples: Sequence[Sample]
    compared: Sequence[Compared] = ()

    def with_metrics(self, metrics: Iterable[Metric]) -> "Validation":
        """With the scores of more metrics, the mean over `compared`."""
        more = {one.key: float(np.mean([each.value(one) for each in self.compared])) for one in metrics}
        return self._replace(scores={**self.scores, **more})


class _Batch(Protocol):
    def to(self, device: torch.device) -> Any:
        """The batch on a device."""


def mean_loss(model: nn.Module, batches: Iterable[_Batch]) -> float:
    """The model's loss on all batches together, in nats an item.

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


def samples_of(count: int, shown: int = 3) -> list[int]:
    """Which of `count` validation examples are shown as samples: other ones at each validation.

    Training seeds torch's generator before each validation, so one that is done again shows the same. No
    random number of that generator is used up.

    Args:
        count: examples to choose from.
        shown: samples wanted.

    Returns:
        At most `shown` different numbers below `count`, in ascending order.
    """
    chance = np.random.default_rng(torch.initial_seed() % 2**63)
    return sorted(chance.choice(count, min(count, shown), replace=False).tolist())
