"""Teacher forcing: the probability that the decoder reads the true token.

Otherwise it reads its own prediction. At 1 the model trains as usual, on all positions at once. Read next:
update.py, which passes the probability on.
"""

import inspect
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

from weft.errors import ConfigError
from weft.setting_types import AtLeastOne, Bounds, Probability, Section


@dataclass(frozen=True, kw_only=True)
class Feeding(Section, ABC):
    """Gives the probability of feeding the true token.

    Args:
        per_sequence: draw once per sequence instead of once per token.
        parallel: two passes over all positions instead of step by step: the first predicts each token from
            the true ones, the second reads the mixture (Mihaylova & Martins 2019).

    Raises:
        ConfigError: a setting is out of its range.

    Example:
        >>> @dataclass(frozen=True)
        ... class Alternating(Feeding):
        ...     def probability(self, update, epoch):
        ...         return float(epoch % 2 == 0)
        >>> [Alternating().probability(0, epoch) for epoch in (0, 1, 2)]
        [1.0, 0.0, 1.0]
    """

    per_sequence: bool = False
    parallel: bool = False

    @abstractmethod
    def probability(self, update: int, epoch: int) -> float:
        """The probability of feeding the true token, 0 to 1.

        Args:
            update: number of updates so far.
            epoch: number of completed epochs.
        """


def always_true(feeding: Feeding) -> bool:
    """Whether the true token is fed from the first update to the last."""
    return feeding.probability(0, 0) >= 1 and feeding.probability(10**9, 10**6) >= 1


def check_fits(feeding: Feeding, model: Any) -> None:
    """Check that a model supports these settings: its own tokens as input, and in parallel."""
    loss = getattr(model, "loss", None)  # a model that carries its state may have only `carry_on`
    known = inspect.signature(loss).parameters if loss else {}
    if not always_true(feeding) and "feeding" not in known:
        raise ConfigError(
            "training.feeding: expected a probability of 1 for a model that writes no tokens; leave it out"
        )
    if feeding.parallel and "parallel" not in known:
        raise ConfigError(
            "training.feeding.parallel: expected false, this model cannot feed tokens in "
            "parallel; leave it out"
        )


@dataclass(frozen=True, kw_only=True)
class ConstantFeeding(Feeding):
    """p.

    Args:
        p: probability of feeding the true token.

    Example:
        >>> ConstantFeeding(p=0.75).probability(update=1000, epoch=2)
        0.75
    """

    p: Probability = 1.0

    def probability(self, update: int, epoch: int) -> float:
        return self.p


@dataclass(frozen=True, kw_only=True)
class StepFeeding(Feeding):
    """`before` until `after_epochs` epochs are complete, then `after`.

    Args:
        after_epochs: epochs completed before the change.
        before: probability of feeding the true token until then.
        after: probability from then on.

    Example:
        >>> [StepFeeding(after_epochs=3).probability(0, epoch) for epoch in (2, 3)]
        [1.0, 0.5]
    """

    after_epochs: int
    before: Probability = 1.0
    after: Probability = 0.5

    def probability(self, update: int, epoch: int) -> float:
        return self.before if epoch < self.after_epochs else self.after


@dataclass(frozen=True, kw_only=True)
class LinearFeeding(Feeding):
    """max(floor, 1 - (1 - floor) i / updates), with i the number of updates so far.

    Args:
        updates: updates until the floor.
        floor: the lowest probability.

    Source: Bengio et al. 2015, section 2.4.

    Example:
        >>> [LinearFeeding(updates=1000).probability(update, 0) for update in (0, 250, 2000)]
        [1.0, 0.75, 0.0]
    """

    updates: AtLeastOne
    floor: Probability = 0.0

    def probability(self, update: int, epoch: int) -> float:
        return max(self.floor, 1 - (1 - self.floor) * update / self.updates)


@dataclass(frozen=True, kw_only=True)
class Exponential(Feeding):
    """max(floor, k^i), with i the number of updates so far.

    Args:
        k: factor per update, just below 1.
        floor: the lowest probability.

    Source: Bengio et al. 2015, section 2.4.

    Example:
        >>> [Exponential(k=0.5, floor=0.2).probability(update, 0) for update in (0, 2, 9)]
        [1.0, 0.25, 0.2]
    """

    k: Probability = 0.9999
    floor: Probability = 0.0

    def probability(self, update: int, epoch: int) -> float:
        return max(self.floor, self.k**update)


@dataclass(frozen=True, kw_only=True)
class InverseSigmoid(Feeding):
    """max(floor, k / (k + exp(i / k))), with i the number of updates so far.

    Args:
        k: at least 1; the probability is 1/2 after k ln k updates.
        floor: the lowest probability.

    Source: Bengio et al. 2015, section 2.4.

    Example:
        >>> round(InverseSigmoid(k=3.0).probability(0, 0), 4)  # k / (k + 1)
        0.75
    """

    k: Annotated[float, Bounds(ge=1)] = 1000.0
    floor: Probability = 0.0

    def probability(self, update: int, epoch: int) -> float:
        """From k / (k + 1) to `floor`."""
        exponent = update / self.k - math.log(self.k)
        return max(self.floor, 1 / (1 + math.exp(min(exponent, 700.0))))  # 700: exp overflows above 709
