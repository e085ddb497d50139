"""How much each class weighs in the loss of training, where some are rare or matter more than others.

Read next: ../../nn/heads/categorical.py, which uses the weights.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from weft.errors import ConfigError

ClassWeights = Literal["none", "balanced"] | Mapping[str, float]
"""A setting of a model: all classes alike, all of the same total weight, or the user's own weights."""


def check_weights(given: ClassWeights) -> None:
    """Check the user's own weights.

    Raises:
        ConfigError: one is not above 0.
    """
    for label, weight in given.items() if isinstance(given, Mapping) else ():
        if not weight > 0:
            raise ConfigError(f"class_weights: expected a number above 0 for {label!r}, got {weight:g}")


def weights_of(given: ClassWeights, classes: Sequence[str], seen: Iterable[str]) -> list[float]:
    """The weight of each class; empty if each counts 1.

    Args:
        given: the setting.
        classes: of the model, in order.
        seen: the class of each training example.

    Raises:
        ConfigError: there is a weight for an unknown class.

    Example:
        >>> weights_of("balanced", ["a", "b"], "aaaaaabb")
        [0.6666666666666666, 2.0]
        >>> weights_of({"b": 3.0}, ["a", "b"], "aaaaaabb")
        [1.0, 3.0]
    """
    if isinstance(given, Mapping):
        for label in given:
            if label not in classes:
                near = difflib.get_close_matches(label, classes, 1, 0.5)
                shown = f"did you mean {near[0]!r}?" if near else f"they are {', '.join(classes)[:200]}"
                raise ConfigError(
                    f"model.class_weights: expected classes of the training data, got {label!r}; {shown}"
                )
        return [given.get(label, 1.0) for label in classes]
    if given == "none":
        return []
    counts = Counter(seen)
    return [counts.total() / (len(classes) * max(1, counts[label])) for label in classes]
