"""The section `decoding` of a run, from the settings of the transformers library's `generate`.

Read next: ../tasks/seq2seq/decoding.py, the section.
"""

from typing import Any, NamedTuple

from weft.errors import CheckpointError
from weft.importing.checkpoint import LARGEST_CONFIG, Checkpoint
from weft.store import jsonfile

FILE = "generation_config.json"
OF_TASKS = "task_specific_params"
SYMBOLS = ("pad_token_id", "bos_token_id", "eos_token_id")
OFF: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "forced_decoder_ids": None,
    "begin_suppress_tokens": None,
    "sequence_bias": None,
    "force_words_ids": None,
    "constraints": None,
    "penalty_alpha": None,
    "guidance_scale": 1.0,
    "min_p": None,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "dola_layers": None,
    "max_time": None,
    "stop_strings": None,
}
"""Settings that cannot be taken over, and the values that turn them off."""

STOPS = {True: "full", False: "worst", None: "worst", "never": "never"}
"""Our `stop` for each `early_stopping`."""


class SearchDefaults(NamedTuple):
    """How the model searches."""

    decoding: dict[str, Any]
    without: list[str]  # settings that are not taken over


def with_generation(foreign: Checkpoint, *tasks: str) -> Checkpoint:
    """The checkpoint with its settings of `generate` in its configuration.

    Those of generation_config.json are preferred to those of config.json, and those that config.json has for
    a task (`task_specific_params`) to both.

    Args:
        foreign: the checkpoint.
        tasks: names of the task there; the first that is found is used.

    Raises:
        CheckpointError: generation_config.json is damaged.
    """
    path, found = foreign.path / FILE, {}
    if path.is_file():
        try:
            found = dict(jsonfile.read(path, LARGEST_CONFIG))
        except (OSError, ValueError, TypeError) as error:
            raise CheckpointError(f"{path}: cannot be read ({error}); fetch it again") from error
    own = {name: foreign.config[name] for name in SYMBOLS if foreign.config.get(name) is not None}
    known = foreign.config.get(OF_TASKS)
    of_tasks = [known[task] for task in tasks if isinstance(known, dict) and task in known]
    asked = of_tasks[0] if of_tasks and isinstance(of_tasks[0], dict) else {}
    return foreign._replace(config=foreign.config | found | own | asked)


def searched(foreign: Checkpoint) -> SearchDefaults:
    """The search settings of a checkpoint that `with_generation` returned."""
    return _Reading(foreign.config).searched()


class _Reading:
    """Reads settings of `generate`, and collects those that cannot be taken over."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._without: list[str] = []

    def searched(self) -> SearchDefaults:
        for name, off in OFF.items():
            if self._config.get(name) not in (None, off):
                self._leave_out(name)
        self._check_symbols()
        decoding = self._kind() | self._lengths()
        if repeat := self._number("no_repeat_ngram_size", 1, 1000):
            decoding["no_repeat_ngram"] = repeat
        if self._config.get("renormalize_logits") and {"no_repeat_ngram", "min_length"} & decoding.keys():
            self._leave_out("renormalize_logits")
        return SearchDefaults(decoding, self._without)

    def _kind(self) -> dict[str, Any]:
        """Sampling, greedy or beam search, with its own settings."""
        beam = self._number("num_beams", 1, 1000) or 1
        if self._config.get("do_sample"):
            if beam == 1:
                return self._sampling()
            self._leave_out("do_sample")
        if beam == 1:
            return {"search": "greedy"}
        decoding: dict[str, Any] = {"search": "beam", "beam": beam}
        early, penalty = self._config.get("early_stopping"), self._config.get("length_penalty")
        if isinstance(early, bool | None) or early == "never":
            decoding["stop"] = STOPS[early]
        else:
            self._leave_out("early_stopping")
        if isinstance(penalty, int | float) and 0 <= penalty <= 10:
            decoding["length_penalty"] = float(penalty)
        elif penalty is not None:
            self._leave_out("length_penalty")
        groups = self._number("num_beam_groups", 2, beam)
        if groups and beam % groups == 0:
            decoding |= {"diverse": groups, "diversity": self._config.get("diversity_penalty") or 0.0}
        elif groups:
            self._leave_out("num_beam_groups")
        return decoding

    def _sampling(self) -> dict[str, Any]:
        decoding: dict[str, Any] = {"search": "sample"}
        for name, usual in (("temperature", 1.0), ("top_k", 50), ("top_p", 1.0)):
            value = self._config.get(name)
            decoding[name] = usual if value is None else value
        return decoding

    def _lengths(self) -> dict[str, Any]:
        """Limits of the output; their `max_length` and `min_length` count the decoder's first input."""
        decoding: dict[str, Any] = {}
        least = max(
            (self._number("min_length", 1, 1000) or 1) - 1, self._number("min_new_tokens", 1, 1000) or 0
        )
        if least:
            decoding["min_length"] = least
        most = self._number("max_new_tokens", 1, 100_000) or (self._number("max_length", 2, 100_001) or 1) - 1
        if most:
            decoding |= {"max_ratio": 0.0, "max_extra": most}
        return decoding

    def _check_symbols(self) -> None:
        """Say which tokens are forbidden or forced, beside those that are never or always written."""
        special = {self._config.get(name) for name in (*SYMBOLS, "decoder_start_token_id")}
        suppressed, words = self._config.get("suppress_tokens"), self._config.get("bad_words_ids")
        if suppressed and not set(suppressed) <= special:
            self._leave_out("suppress_tokens")
        if words and not all(len(word) == 1 and word[0] in special for word in words):
            self._leave_out("bad_words_ids")
        end = self._config.get("forced_eos_token_id")
        if end is not None and end != self._config.get("eos_token_id"):
            self._leave_out("forced_eos_token_id")

    def _number(self, name: str, least: int, most: int) -> int | None:
        value = self._config.get(name)
        if value is None or value == least - 1:  # not given, or turned off
            return None
        if isinstance(value, int) and least <= value <= most:
            return value
        self._leave_out(name)
        return None

    def _leave_out(self, name: str) -> None:
        self._without.append(f"{name} {str(self._config[name])[:40]}")
