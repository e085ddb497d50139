"""A recipe's section `decoding` for sequence pairs, what users may change of it, what `weft tune` tries.

Read next: translator.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from weft.errors import ConfigError
from weft.search.beam import Stop
from weft.search.ensemble import Mean
from weft.search.hypotheses import Normalisation
from weft.search.settings import BeamWidth, OneOrMore, SearchSettings, TokenCount, check_sampled
from weft.setting_types import Bounds, Whole
from weft.tasks.task import EvaluationSettings, OtherRun, RequestSettings, SamplingSettings

Finite = Annotated[float, Bounds(ge=0, lt=math.inf)]
_OF_BEAMS = {
    "diverse": 1,
    "require": (),
    "glossary": None,
    "coverage": 0.0,
}  # and the value that turns each off


Keeps = Literal["nothing", "texts", "parts"]
"""What answers keep of their sources: texts without letters as they are; or also parts of other texts."""


@dataclass(frozen=True, kw_only=True)
class Decoding(SearchSettings):
    """The search settings for translations: a recipe's section `decoding`.

    Args:
        nbest: translations per line.
        max_ratio, max_extra: at most max_ratio * (source tokens) + max_extra tokens are written.
        stop: when a plain beam search ends, once as many hypotheses as the beam is wide have ended: "best",
            when no unfinished one scores better than the best of them; "full", at once; "worst", when none
            scores better than the worst of them; "never", when no better one can come.
        normalisation: "length", or "gnmt" for Wu et al.'s gentler one (search/hypotheses.py).
        coverage: beta of Wu et al.'s coverage penalty; 0 is none.
        diverse: groups of the beam that avoid each other's tokens (Vijayakumar et al. 2016); 1 is none.
        diversity: nats that a token costs for each earlier group that chose it at the same step.
        prefix: the text that every translation begins with.
        require: words or phrases that every translation contains (grid beam search, Hokamp & Liu 2017).
        glossary: a table TERM TAB TRANSLATION; the translations of the terms in a source are required.
        terms: what the glossary does: "require", the answer contains them exactly; "annotate", they are
            written into the source, and the model may inflect or leave them out (needs `data.glossary`).
        no_repeat_ngram: length of the n-grams that may not be repeated in a translation; 0 allows all.
        min_length: minimum number of tokens.
        mean: how an ensemble combines its members: mean "probability", or mean "log" probability.
        verbatim: text without letters is copied; a translator keeps placeholders, tags, addresses, and words
            with characters that its vocabulary lacks; false leaves everything to the model.
        shortlist: K; a faster search: each batch can write only the K likeliest translations of each source
            token (IBM model 1 on the training data), the K most frequent tokens and the required ones.
            Probabilities are over these. 0 allows all tokens (data/shortlist.py).
        precision: "bfloat16" computes with weights that are rounded once; "int8" multiplies the layers
            of decoder and Transformer encoder and the output layer in 8-bit integers where compiled code can.
    """

    max_ratio: Annotated[float, Bounds(ge=0, le=1_000)] = 2.0
    max_extra: OneOrMore = 10
    stop: Stop = "best"
    normalisation: Normalisation = "length"
    coverage: Finite = 0.0
    diverse: BeamWidth = 1
    diversity: Finite = 0.5
    prefix: str = ""
    require: tuple[str, ...] = ()
    glossary: Path | None = None
    terms: Literal["require", "annotate"] = "require"
    no_repeat_ngram: TokenCount = 0
    min_length: TokenCount = 0
    mean: Mean = "probability"
    verbatim: bool = True
    shortlist: Whole = 0
    precision: Literal["float32", "bfloat16", "int8"] = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_beams()

    def _check_beams(self) -> None:
        given = [name for name in self._of_beams if getattr(self, name) != _OF_BEAMS[name]]
        if given and self.search != "beam":
            raise ConfigError(f"{given[0]}: needs search: beam, got {self.search}")
        if len(given) > 1:
            raise ConfigError(f"{given[0]} and {given[1]}: cannot be combined; leave out one of them")
        if self.beam % self.diverse:
            raise ConfigError(
                f"diverse: {self.diverse} groups do not divide a beam of {self.beam}; "
                f"set beam to {self.diverse * math.ceil(self.beam / self.diverse)}"
            )

    @property
    def _of_beams(self) -> list[str]:
        """The settings that only a beam search has."""
        return [name for name in _OF_BEAMS if name != "glossary" or self.terms == "require"]

    def with_settings(self, asked: RequestSettings) -> "Decoding":
        """These settings with those that the user asks for; what is no setting of a search is ignored.

        Asking for a beam, or for several translations, selects beam search. The beam is wide enough for them
        unless its width is given too.
        """
        settings, asked_for = {field.name for field in fields(self)}, asked.given()
        given: dict[str, Any] = {name: value for name, value in asked_for.items() if name in settings}
        search = given.setdefault("search", "sample" if "sample" in asked_for else self.search)
        check_sampled(search, given)
        if search == "sample" and "beam" in given:
            raise ConfigError("beam: sampling keeps no beam; leave out --beam or --sample")
        wants_beam = (
            "beam" in given or given.get("nbest", 1) > 1 or any(name in given for name in self._of_beams)
        )
        if search != "sample" and wants_beam:
            given["search"] = "beam"
            groups = max(1, given.get("diverse", self.diverse))
            given.setdefault("beam", groups * math.ceil(max(self.beam, given.get("nbest", 1)) / groups))
        return replace(self, **given)

    def describe(self) -> str:
        """For signatures, such as "beam 5, length penalty 1.0"."""
        if self.search == "greedy" or (self.search == "beam" and self.beam == 1):
            return "greedy" + self._beside()
        if self.search == "beam":
            return f"beam {self.beam}, length penalty {self.length_penalty:g}" + self._beside()
        return (
            f"sampled, temperature {self.temperature:g}, top_k {self.top_k}, top_p {self.top_p:g}"
            + self._beside()
        )

    def _beside(self) -> str:
        """Every other setting that changes the output and is not the default."""
        names = (
            "stop",
            "normalisation",
            "coverage",
            "diverse",
            "prefix",
            "require",
            "glossary",
            "terms",
            "no_repeat_ngram",
            "min_length",
            "verbatim",
            "shortlist",
        )
        plain = {field.name: field.default for field in fields(self)}
        said = [(name, getattr(self, name)) for name in (*names, "precision")]
        return "".join(f", {name} {value}" for name, value in said if value != plain[name])


@dataclass(frozen=True, kw_only=True)
class DecodingSettings(RequestSettings):
    """What the user may change of a search; see Decoding. None is as the recipe says.

    Args:
        ensemble: further runs to average with.
    """

    beam: int | None = None
    length_penalty: float | None = None
    diverse: int | None = None
    prefix: str | None = None
    require: tuple[str, ...] = ()
    no_repeat_ngram: int | None = None
    min_length: int | None = None
    coverage: float | None = None
    ensemble: Sequence[OtherRun] = ()


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(DecodingSettings, SamplingSettings):
    """What the user asks of the sequences that a model writes; see Decoding.

    Args:
        scores: write the length-normalised log-probability of each sequence too.
        plot: folder for pictures, which the command draws.
    """

    nbest: int | None = None
    scores: bool = False
    plot: Path | None = None


@dataclass(frozen=True, kw_only=True)
class TextGenerationSettings(GenerationSettings):
    """What the user asks of the texts that a model writes for a text.

    Args:
        alignments: file for the alignments of words, which the command writes.
    """

    alignments: Path | None = None
    glossary: Path | None = None


@dataclass(frozen=True, kw_only=True)
class TranslationSettings(TextGenerationSettings):
    """What the user asks of translations.

    Args:
        split_sentences: translate lines of several sentences one by one.
        document: a file that the command translates.
    """

    split_sentences: bool = False
    document: Path | None = None


@dataclass(frozen=True, kw_only=True)
class GenerationEvaluationSettings(DecodingSettings, EvaluationSettings):
    """What the user asks of the scores of sequences that a model writes.

    Args:
        score: a file; score its lines instead of writing any.
    """

    score: Path | None = None


@dataclass(frozen=True, kw_only=True)
class TextEvaluationSettings(GenerationEvaluationSettings):
    """What the user asks of the scores of texts that a model writes for a text.

    Args:
        source, target: columns of a table of other data; None for those of the recipe.
    """

    glossary: Path | None = None
    source: str | None = None
    target: str | None = None


@dataclass(frozen=True, kw_only=True)
class TranslationEvaluationSettings(TextEvaluationSettings):
    """What the user asks of the scores of translations.

    Args:
        lowercase: compute BLEU and chrF on lower-cased text.
    """

    lowercase: bool = False
