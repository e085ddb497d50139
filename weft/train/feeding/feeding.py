"""The contract of teacher forcing: with what probability the decoder reads the true token.

Where it reads another one, that is its own prediction. At 1 the model trains in the usual way, all
positions at once. Read next: inverse_sigmoid.py; ../update.py, which passes the probability on.
"""

from abc import ABC, abstractmethod

from weft.errors import ConfigError


class Feeding(ABC):
    """Gives the probability of feeding the true token.

    Attributes:
        per_sequence: draw once a sequence instead of once a token.
    """

    per_sequence: bool

    @abstractmethod
    def probability(self, update: int, epoch: int) -> float:
        """The probability of feeding the true token, 0 to 1.

        Args:
            update: updates taken so far.
            epoch: epochs completed so far.
        """


def check_probability(name: str, **probabilities: float) -> None:
    """Refuse what is no probability.

    Raises:
        ConfigError: naming the setting.
    """
    for key, value in probabilities.items():
        if not 0 <= value <= 1:
            raise ConfigError(f"{name}: {key} is {value}, a probability from 0 to 1 is needed")


def check_positive(name: str, **numbers: float) -> None:
    """Refuse zero and less.

    Raises:
        ConfigError: naming the setting.
    """
    for key, value in numbers.items():
        if not value > 0:
            raise ConfigError(f"{name}: {key} is {value}, more than 0 is needed")
