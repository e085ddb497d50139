"""Find the family of a checkpoint and build its model. Read next: decoders.py; encoders.py."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from weft.errors import CheckpointError, ConfigError, WeftError
from weft.importing.checkpoint import Checkpoint, read_checkpoint
from weft.importing.families.decoders import LLAMAS, gpt2, gpt_neox, llama, opt
from weft.importing.families.encoder_decoders import FORMS, T5_ARCHITECTURES, t5, translator
from weft.importing.families.encoders import BERTS, bert, classifier, classifies, modernbert, vit
from weft.models import Generator, Labeller

FAMILIES: dict[str, Callable[[Checkpoint], Generator | Labeller]] = {
    "gpt2": gpt2,
    "opt": opt,
    "gpt_neox": gpt_neox,
    **dict.fromkeys(LLAMAS, llama),
    **dict.fromkeys(BERTS, bert),
    "modernbert": modernbert,
    **dict.fromkeys(FORMS, translator),
    **dict.fromkeys(T5_ARCHITECTURES, t5),
    "vit": vit,
}
"""The import function for each `model_type` of a config.json."""


def import_model(path: str | Path) -> Generator | Labeller:
    """Import a checkpoint directory (config.json, model.safetensors) as a model in evaluation mode.

    Raises:
        CheckpointError: files or tensors are missing, extra or of another shape.
        ConfigError: the family or one of its settings is not supported.

    Example:
        >>> import_model("models/none")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        weft.errors.CheckpointError: models/none/config.json: no such file; give a directory ...
    """
    foreign = read_checkpoint(Path(path))
    name = foreign.setting("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise ConfigError(f"{foreign.place}: model_type: expected one of {known}, got {str(name)[:60]}")
    return built(foreign)


def built(foreign: Checkpoint) -> Generator | Labeller:
    """Build the model, first without memory, because a configuration may ask for terabytes."""
    make = classifier if classifies(foreign) else FAMILIES[foreign.setting("model_type")]
    with guarded(foreign):
        with torch.device("meta"):
            make(foreign)
        return make(foreign)


@contextmanager
def guarded(foreign: Checkpoint) -> Iterator[None]:
    """Turn what a nonsensical configuration causes into one of Weft's errors."""
    try:
        yield
    except WeftError as error:
        if str(foreign.path) in str(error):
            raise
        raise type(error)(f"{foreign.place}: {error}") from error
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError) as error:
        why = " ".join(str(error).split())[:100]
        why = f"{foreign.place}: describes no such model ({why}); fetch it again"
        raise CheckpointError(why) from error
