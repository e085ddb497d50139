"""Parts of one file as splits: every k-th example for validation, folds of a cross-validation.

The parts depend on the numbers of the examples alone, so they are the same in every run and for every
model. Read next: data.py.
"""

from weft.errors import ConfigError
from weft.tasks.task import Split


def part_of(number: int, *, folds: int, fold: int, hold_out: int) -> Split:
    """Which split the example of this number belongs to.

    With folds, the examples whose number leaves `fold` when divided by `folds` are the test split. Of those
    that remain, every `hold_out`-th one is for validation.

    Args:
        number: of the example, the first is 0.
        folds: of a cross-validation; 0 for none.
        fold: which one is tested.
        hold_out: 10 keeps a tenth for validation; 0 keeps none.

    Example:
        >>> [part_of(number, folds=3, fold=1, hold_out=2) for number in range(6)]
        ['valid', 'test', 'train', 'valid', 'test', 'train']
    """
    if folds:
        if number % folds == fold:
            return "test"
        number = number // folds * (folds - 1) + number % folds - (number % folds > fold)
    return "valid" if hold_out and number % hold_out == 0 else "train"


def check_parts(*, folds: int, fold: int, hold_out: int, valid: bool, test: bool) -> None:
    """Refuse settings that do not fit together.

    Raises:
        ConfigError: beginning with the name of the setting.
    """
    if folds < 0 or folds == 1:
        raise ConfigError(f"folds: {folds} came; 10 makes ten parts, 0 makes none")
    if not 0 <= fold < max(1, folds):
        raise ConfigError(f"fold: {fold} came, a number from 0 to {max(1, folds) - 1} is needed")
    if hold_out < 0 or hold_out == 1:
        raise ConfigError(f"hold_out: {hold_out} came; 10 keeps every tenth example for validation")
    if folds and test:
        raise ConfigError("folds: a test file came too, and both give test data; leave one out")
    if hold_out and valid:
        raise ConfigError("hold_out: validation files came too; leave one out")
    if not hold_out and not valid:
        raise ConfigError(
            "valid: validation files are needed beside train; or set hold_out: 10 to keep every tenth "
            "training example out for validation"
        )
