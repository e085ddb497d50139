"""A recipe's section `decoding` for sequence pairs: how a translation is searched.

Read next: translator.py.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from weft.errors import ConfigError

_LEAST = {
    "beam": 1,
    "nbest": 1,
    "batch_rows": 1,
    "length_penalty": 0,
    "max_ratio": 0,
    "max_extra": 1,
    "top_k": 0,
    "seed": 0,
}


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How a translation is searched: a recipe's section `decoding`.

    Args:
        search: beam, greedy or sample.
        beam: hypotheses kept; 1 is greedy.
        nbest: translations returned a line.
        length_penalty: a hypothesis's log-probability is divided by its length to this power; 0 favours
            short ones.
        max_ratio, max_extra: at most max_ratio * (source tokens) + max_extra tokens are written.
        temperature, top_k, top_p: of sampling; top_k 0 and top_p 1 leave every token in.
        seed: of sampling.
        batch_rows: sources decoded at once.
    """

    search: Literal["beam", "greedy", "sample"] = "beam"
    beam: int = 5
    nbest: int = 1
    length_penalty: float = 1.0
    max_ratio: float = 2.0
    max_extra: int = 10
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1
    batch_rows: int = 64

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not least <= value < math.inf:
                raise ConfigError(f"{name}: {value} came, at least {least} is needed")
        if not 0 < self.temperature < math.inf:
            raise ConfigError(f"temperature: {self.temperature} came, a number above 0 is needed")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p: {self.top_p} came, a number above 0 and at most 1 is needed")
        if self.search == "beam" and self.nbest > self.beam:
            raise ConfigError(
                f"nbest: {self.nbest} translations of a beam of {self.beam} were asked for; "
                f"raise beam to {self.nbest}"
            )
        if self.search == "greedy" and self.nbest > 1:
            raise ConfigError(
                f"nbest: greedy search gives 1 translation, {self.nbest} were asked for; use beam"
            )

    def asked(self, options: Mapping[str, Any]) -> "Decoding":
        """This way to search with what a user asks for; what is no setting of it is left alone.

        Whoever asks for a beam, or for several translations, gets a beam search; it is wide enough for
        them unless its width is given too.

        Raises:
            ConfigError: a setting that the search would not look at, or one out of its range.
        """
        settings = {field.name for field in fields(self)}
        given = {name: value for name, value in options.items() if name in settings}
        search = given.setdefault("search", "sample" if options.get("sample") else self.search)
        unused = [name for name in ("temperature", "top_k", "top_p", "seed") if name in given]
        if search != "sample" and unused:
            raise ConfigError(
                f"{unused[0]}: is a setting of sampling, and {search} was asked for; add --sample"
            )
        if search == "sample" and "beam" in given:
            raise ConfigError("beam: sampling keeps no beam; leave out --beam or --sample")
        if search != "sample" and ("beam" in given or given.get("nbest", 1) > 1):
            given["search"] = "beam"
            given.setdefault("beam", max(self.beam, given.get("nbest", 1)))
        return replace(self, **given)

    def describe(self) -> str:
        """For signatures, such as "beam 5, length penalty 1.0"."""
        if self.search == "greedy" or (self.search == "beam" and self.beam == 1):
            return "greedy"
        if self.search == "beam":
            return f"beam {self.beam}, length penalty {self.length_penalty:g}"
        return f"sampled, temperature {self.temperature:g}, top_k {self.top_k}, top_p {self.top_p:g}"
