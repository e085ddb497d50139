"""A language model's section `decoding`: how it continues a text. Read next: predictor.py."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from weft.errors import ConfigError
from weft.search.budget import BatchRows, OneOrMore, TokenCount
from weft.search.settings import SearchSettings, check_sampled
from weft.setting_types import Probability, Whole
from weft.tasks.task import SamplingSettings


@dataclass(frozen=True, kw_only=True)
class ProseDecoding(SearchSettings):
    """How a text is continued, and how it is scored: a recipe's section `decoding`.

    Args:
        search: sample, greedy or beam.
        nbest: continuations of each line.
        batch_rows: lines written at once.
        max_tokens: maximum number of tokens written; 0 writes nothing.
        max_lines: line ends after which writing stops.
        stop: texts before which writing stops.
        mixture: weight of an n-gram model of the training text next to the neural one, 0 to 1, or "tuned" on
            the validation text (each of its halves is scored with the weight tuned on the other).
        order: of the n-grams; 0 takes 7 for characters and 5 otherwise.
        cache: mix in a cache of the last so many tokens, which makes repeated words more probable
            (scoring.py). Its weight is tuned on the validation text, as with `mixture: tuned`. Needs
            data.batches: stream. 500 to 2000 is usual; 0 for none.
        stride: of windows, when a text is scored; 0 takes their length. A smaller one gives more context.
    """

    search: Literal["sample", "greedy", "beam"] = "sample"
    batch_rows: BatchRows = 32
    max_tokens: TokenCount = 100
    max_lines: OneOrMore = 1
    stop: tuple[str, ...] = ()
    mixture: Probability | Literal["tuned"] = 0.0
    order: Whole = 0
    cache: Whole = 0
    stride: Whole = 0

    @property
    def ngram_weight(self) -> float | None:
        """The given weight of the n-grams; None if it is tuned."""
        return None if self.mixture == "tuned" else float(self.mixture)

    @property
    def tuned(self) -> bool:
        """Whether weights of a mixture are tuned on the validation text."""
        return self.ngram_weight is None or self.cache > 0

    def with_settings(self, asked: "ProseSettings") -> "ProseDecoding":
        """These settings with those that the user asks for.

        Raises:
            ConfigError: the search does not use a setting, or a setting is out of range.
        """
        settings = {field.name for field in fields(self)}
        given: dict[str, Any] = {name: value for name, value in asked.given().items() if name in settings}
        if asked.sample:
            given["search"] = "sample"
        elif "beam" in given:
            given["search"] = "greedy" if given["beam"] == 1 and given.get("nbest", 1) == 1 else "beam"
        search = given.get("search", self.search)
        check_sampled(search, given)
        if search != "beam" and "length_penalty" in given:
            raise ConfigError(f"length_penalty: applies to beam search, but the search is {search}")
        return replace(self, **given)


@dataclass(frozen=True, kw_only=True)
class ProseSettings(SamplingSettings):
    """What the user asks of continuations; see ProseDecoding. None is as the recipe says.

    Args:
        scores: write the length-normalised log-probability of each continuation too.
        plot: folder for pictures, which the command draws.
    """

    beam: int | None = None
    nbest: int | None = None
    scores: bool = False
    length_penalty: float | None = None
    plot: Path | None = None
