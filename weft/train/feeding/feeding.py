"""The contract of teacher forcing: the probability that the decoder reads the true token.

Otherwise it reads its own prediction. At 1 the model trains as usual, on all positions at once. Read next:
inverse_sigmoid.py; ../update.py, which passes the probability on.
"""

import inspect
from abc import ABC, abstractmethod
from typing import Any

from weft.errors import ConfigError


class Feeding(ABC):
    """Gives the probability of feeding the true token.

    Attributes:
        per_sequence: draw once per sequence instead of once per token.
        parallel: two passes over all positions instead of step by step: the first predicts each token from
            the true ones, the second reads the mixture (Mihaylova & Martins 2019).
    """

    per_sequence: bool
    parallel: bool

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
    """Check that a model supports these settings: its own tokens as input, and in parallel.

    Raises:
        ConfigError: it does not.
    """
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


def check_probability(name: str, **probabilities: float) -> None:
    """Check that numbers are probabilities.

    Raises:
        ConfigError: one is not; the message names the setting.
    """
    for key, value in probabilities.items():
        if not 0 <= value <= 1:
            raise ConfigError(f"{name}: expected {key} to be a probability from 0 to 1, got {value}")


def check_positive(name: str, **numbers: float) -> None:
    """Check that numbers are positive.

    Raises:
        ConfigError: one is not; the message names the setting.
    """
    for key, value in numbers.items():
        if not value > 0:
            raise ConfigError(f"{name}: expected {key} to be more than 0, got {value}")
