"""Which training examples are held out for validation, where a recipe names no validation file."""

from zlib import crc32

from weft.errors import ConfigError


def is_held_out(number: int, every: int) -> bool:
    """Whether an example is the one of its block of `every` examples that is held out.

    Its place in the block is a hash, the first of the first block; so it is always the same.
    """
    block, place = divmod(number, every)
    return place == (crc32(str(block).encode()) % every if block else 0)


def check_hold_out(hold_out: int, *, valid: str | None, own: str = "") -> None:
    """Check that a section `data` has validation data, and from one place."""
    if hold_out < 0 or hold_out == 1:
        raise ConfigError(
            f"hold_out: expected 0 for none or at least 2, got {hold_out}; 20 holds out one example of 20"
        )
    if hold_out and (own or valid):
        raise ConfigError(f"hold_out: cannot be combined with {own or 'validation files'}; leave one out")
    if not (hold_out or own or valid):
        raise ConfigError(
            "valid: expected validation files in addition to train; or set hold_out: 20 to hold out one "
            "example of 20"
        )
