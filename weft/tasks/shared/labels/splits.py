"""Parts of one file as splits: a held-out validation part, folds of a cross-validation.

With a seed, the examples are shuffled and every class is distributed evenly over the parts. Without one,
the line number decides, as in older recipes, and a sorted file gives unequal parts.
The parts depend only on the labels and the seed, not on model or processor. Read next: data.py.
"""

from collections import Counter
from collections.abc import Sequence

from weft.data.split import rank
from weft.errors import ConfigError, DataError
from weft.tasks.task import Split
from weft.wording import plural

ENOUGH = 1068
"""Number of texts whose accuracy has a 95 % interval of at most ±3 points."""


def parts(labels: Sequence[str], *, folds: int, fold: int, hold_out: int, seed: int | None) -> list[Split]:
    """The split of each example.

    Args:
        labels: of the examples; all equal if there are no labels.
        folds, fold: the number of folds of a cross-validation, and the one that is tested; 0 for none.
        hold_out: 10 holds out a tenth of the other examples for validation; 0 holds out none.
        seed: of the shuffle; None takes every k-th example in the order of the file.

    Example:
        >>> parts("abababab", folds=0, fold=0, hold_out=4, seed=1)
        ['valid', 'train', 'train', 'train', 'train', 'train', 'train', 'valid']
        >>> parts("abababab", folds=0, fold=0, hold_out=4, seed=None)
        ['valid', 'train', 'train', 'train', 'valid', 'train', 'train', 'train']
    """
    if seed is None:
        return [part_of(number, folds=folds, fold=fold, hold_out=hold_out) for number in range(len(labels))]
    found: list[Split] = ["train"] * len(labels)
    rest = []
    for place, number in enumerate(_dealt(labels, seed)):
        if folds and place % folds == fold:
            found[number] = "test"
        else:
            rest.append(number)
    left = Counter(labels[number] for number in rest)
    shared = [
        number for number in rest if left[labels[number]] > 1
    ]  # the only example of a class is for training
    for number in shared[::hold_out] if hold_out else ():
        found[number] = "valid"
    return found


def _dealt(labels: Sequence[str], seed: int) -> list[int]:
    """Example numbers by class, shuffled within each class; dealing them out gives each part its share."""
    classes = {label: place for place, label in enumerate(dict.fromkeys(labels))}

    def key(number: int) -> tuple[int, bytes]:
        return classes[labels[number]], rank(number, seed)

    return sorted(range(len(labels)), key=key)


def part_of(number: int, *, folds: int, fold: int, hold_out: int) -> Split:
    """The split of an example by its number alone.

    With folds, the test split is the examples whose number modulo `folds` is `fold`. Every `hold_out`-th of
    the others is for validation.

    Args:
        number: number of the example, from 0.
        folds: number of folds of a cross-validation; 0 for none.
        fold: the one that is tested.
        hold_out: 10 holds out a tenth for validation; 0 holds out none.

    Example:
        >>> [part_of(number, folds=3, fold=1, hold_out=2) for number in range(6)]
        ['valid', 'test', 'train', 'valid', 'test', 'train']
    """
    if folds:
        if number % folds == fold:
            return "test"
        number = number // folds * (folds - 1) + number % folds - (number % folds > fold)
    return "valid" if hold_out and number % hold_out == 0 else "train"


def check_classes(labels: Sequence[str], part: str, *, cut: bool, seed: int | None) -> None:
    """Check that a part of the data has more than one class.

    Args:
        labels: of the part.
        part: its name, such as "reviews.csv valid".
        cut: whether `hold_out` or `folds` cut the part off a file.
        seed: of the cut.

    Raises:
        DataError: all labels are equal.
    """
    if len(set(labels)) != 1:
        return
    remedy = "give examples of other classes too"
    if cut:
        remedy = "set data.split_seed: 1, which shuffles before it splits, or give a validation file"
    if cut and seed is not None:
        remedy = "hold more examples out (a smaller data.hold_out), or give a validation file"
    raise DataError(
        f"{part}: expected two classes or more, got {plural(len(labels), 'example')}, "
        f"all {labels[0]!r}; {remedy}"
    )


def held_out(total: int) -> int:
    """The hold_out that keeps ENOUGH of `total` texts: at most a fifth and at least a tenth of them.

    Example:
        >>> held_out(900), held_out(6920), held_out(50_000)
        (5, 6, 10)
    """
    return min(10, max(5, total // ENOUGH))


def small_validation(valid: int, train: int, *, cut: bool) -> str | None:
    """A warning about a validation part that is too small to choose a checkpoint; None if it is not.

    The interval of an accuracy on n texts is ±1.96 sqrt(p (1 - p) / n), which is largest for p = 1/2.

    Args:
        valid, train: numbers of texts.
        cut: whether `hold_out` cuts the part off the training file.

    Example:
        >>> small_validation(1068, 5000, cut=True) is None
        True
        >>> str(small_validation(173, 6747, cut=True))[:66]
        'validation texts: 173, so their accuracy is known to ±7.5 points; '
    """
    if valid >= ENOUGH:
        return None
    points = 100 * 1.96 * 0.5 / max(1, valid) ** 0.5
    every = held_out(valid + train)
    more = (valid + train) // every
    hint = f"data.hold_out: {every} would keep {more:,}; " if cut and more > valid else ""
    return (
        f"validation texts: {valid:,}, so their accuracy is known to ±{points:.1f} points; {ENOUGH:,} would "
        f"make it ±3; {hint}training.metric: loss varies less than accuracy"
    )


def check_parts(*, folds: int, fold: int, hold_out: int, seed: int | None, valid: bool, test: bool) -> None:
    """Check that the settings fit together.

    Raises:
        ConfigError: they do not; the message starts with the name of a setting.
    """
    if folds < 0 or folds == 1:
        raise ConfigError(f"folds: expected 0 for none or at least 2, got {folds}; 10 makes ten parts")
    if fold and not folds:
        raise ConfigError("fold: needs folds; set it, or leave fold out")
    if not 0 <= fold < max(1, folds):
        raise ConfigError(f"fold: expected a number from 0 to {folds - 1}, got {fold}")
    if hold_out < 0 or hold_out == 1:
        raise ConfigError(
            f"hold_out: expected 0 for none or at least 2, got {hold_out}; 10 keeps a tenth for validation"
        )
    if seed is not None and seed < 0:
        raise ConfigError(f"split_seed: expected at least 0, got {seed}")
    if seed is not None and not folds and not hold_out:
        raise ConfigError("split_seed: needs hold_out or folds; set one of them, or leave it out")
    if folds and test:
        raise ConfigError("folds: cannot be combined with a test file; leave one out")
    if hold_out and valid:
        raise ConfigError("hold_out: cannot be combined with validation files; leave one out")
    if not hold_out and not valid:
        raise ConfigError(
            "valid: expected validation files in addition to train; or set hold_out: 10 and split_seed: 1 to "
            "hold out a tenth of the training examples for validation"
        )
