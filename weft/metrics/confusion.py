"""The confusion matrix: which class is mistaken for which. Read next: f1.py."""

from collections.abc import Sequence

import numpy as np

from weft.errors import DataError


def classes(hypotheses: Sequence[str], references: Sequence[str]) -> list[str]:
    """All classes: those of the references by decreasing frequency, then the others by name.

    An empty hypothesis stands for an example without an answer, and is no class.
    """
    counts: dict[str, int] = {}
    for label in references:
        counts[label] = counts.get(label, 0) + 1
    found = sorted(counts, key=lambda label: (-counts[label], label))
    return found + sorted(set(hypotheses) - set(counts) - {""})


def confusion(hypotheses: Sequence[str], references: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """Counts [C, C] int64 of reference class (row) against predicted class (column).

    Args:
        hypotheses, references: [N] class names; an empty hypothesis, no answer, is not counted.
        labels: [C] classes in the order of the rows and columns.

    Raises:
        DataError: the lists differ in length.

    Example:
        >>> confusion(["a", "b", "a"], ["a", "b", "b"], ["a", "b"]).tolist()
        [[1, 0], [1, 1]]
    """
    if len(hypotheses) != len(references):
        raise DataError(
            "confusion: expected as many answers as references, "
            f"got {len(hypotheses):,} and {len(references):,}"
        )
    number = {label: place for place, label in enumerate(labels)}
    matrix = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for ours, theirs in zip(hypotheses, references, strict=True):
        if ours or ours in number:
            matrix[number[theirs], number[ours]] += 1
    return matrix
