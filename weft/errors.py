"""What Weft raises when a user can mend the matter: where, what came, what was needed, what to do.

Every one is a ValueError, and the command line turns it into one line and exit code 2.
Read next: tree.py.
"""


class WeftError(ValueError):
    """A mistake that the user can mend; its text is one sentence that says how."""


class ConfigError(WeftError):
    """A recipe, an option or an argument does not fit."""


class ShapeError(WeftError):
    """Tensors whose sizes do not fit together."""


class DataError(WeftError):
    """A data file is missing, damaged or not what it should be; named as file:line."""


class CheckpointError(WeftError):
    """A run directory or a checkpoint is missing, damaged or from another version."""
