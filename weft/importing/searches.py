"""The section `decoding` of a run, from the settings of the transformers library's `generate`.

Read next: ../tasks/shared/writing/decoding.py, the section.
"""

from typing import Any, NamedTuple

from weft import jsonfile
from weft.errors import CheckpointError
from weft.importing.checkpoint import LARGEST_CONFIG, Foreign

FILE = "generation_config.json"
SYMBOLS = ("pad_token_id", "bos_token_id", "eos_token_id")
OFF: dict[str, Any] = {
    "do_sample": False,
    "repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "num_beam_groups": 1,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "sequence_bias": None,
}
"""Settings that cannot be taken over, and the values that turn them off."""


class Searched(NamedTuple):
    """How the model searches."""

    decoding: dict[str, Any]
    without: list[str]  # settings that are not taken over


def with_generation(foreign: Foreign) -> Foreign:
    """The checkpoint with the settings of generation_config.json, if it has the file, in its configuration.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = foreign.path / FILE
    if not path.is_file():
        return foreign
    try:
        found = dict(jsonfile.read(path, LARGEST_CONFIG))
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); fetch it again") from error
    own = {name: foreign.config[name] for name in SYMBOLS if foreign.config.get(name) is not None}
    return foreign._replace(config=foreign.config | found | own)


def searched(foreign: Foreign) -> Searched:
    """The search settings of a checkpoint that `with_generation` returned."""
    found = foreign.config
    without = [
        f"{name} {str(found[name])[:40]}"
        for name, off in OFF.items()
        if found.get(name) is not None and found[name] != off
    ]
    decoding: dict[str, Any] = {}

    def number(name: str, least: int, most: int) -> int | None:
        value = found.get(name)
        if value is None or value == least - 1:  # not given, or turned off
            return None
        if isinstance(value, int) and least <= value <= most:
            return value
        without.append(f"{name} {str(value)[:40]}")
        return None

    if beam := number("num_beams", 1, 1000):
        decoding |= {"search": "beam", "beam": beam} if beam > 1 else {"search": "greedy"}
    penalty = found.get("length_penalty")
    if isinstance(penalty, int | float) and 0 <= penalty <= 10:
        decoding["length_penalty"] = float(penalty)
    elif penalty is not None:
        without.append(f"length_penalty {str(penalty)[:40]}")
    if repeat := number("no_repeat_ngram_size", 1, 1000):
        decoding["no_repeat_ngram"] = repeat
    # theirs counts the decoder's first input
    least = max((number("min_length", 1, 1000) or 1) - 1, number("min_new_tokens", 1, 1000) or 0)
    if least:
        decoding["min_length"] = least
    return Searched(decoding, without)
