"""What users may ask of the sequences that a trained model writes for a source.

The settings of the search are in search/offered.py; `search` has those that the user asks for, by name.
Read next: translator.py; ../../search/offered.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from weft.search.offered import Decoding as Decoding
from weft.search.offered import Offer, options
from weft.tasks.task import EnsembleSettings, EvaluationSettings, ScoredSettings

Keeps = Literal["nothing", "texts", "parts"]
"""What answers keep of their sources: texts without letters as they are; or also parts of other texts."""

_OF_TEXTS = options(Decoding)
_DRAWN = {name: one for name, one in _OF_TEXTS.items() if name not in ("glossary", "domain", "strict")}
_SEARCHED = {name: one for name, one in _DRAWN.items() if one.search != "sample" and name != "nbest"}
_SEARCHED_OF_TEXTS = {**_SEARCHED, **{name: _OF_TEXTS[name] for name in ("glossary", "domain")}}


@dataclass(frozen=True, kw_only=True)
class DecodingSettings(EnsembleSettings):
    """What the user may change of a search."""

    asks: ClassVar[Mapping[str, Offer]] = _SEARCHED


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(DecodingSettings, ScoredSettings):
    """What the user asks of the sequences that a model writes; scores are log-probabilities per token."""

    asks: ClassVar[Mapping[str, Offer]] = _DRAWN


@dataclass(frozen=True, kw_only=True)
class TextGenerationSettings(GenerationSettings):
    """What the user asks of the texts that a model writes for a text.

    Args:
        alignments: file for the alignments of words, which the command writes.
    """

    asks: ClassVar[Mapping[str, Offer]] = _OF_TEXTS
    alignments: Path | None = None


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

    asks: ClassVar[Mapping[str, Offer]] = _SEARCHED_OF_TEXTS
    source: str | None = None
    target: str | None = None


@dataclass(frozen=True, kw_only=True)
class TranslationEvaluationSettings(TextEvaluationSettings):
    """What the user asks of the scores of translations.

    Args:
        lowercase: compute BLEU and chrF on lower-cased text.
    """

    lowercase: bool = False
