"""Runs that search together: what an ensemble asks of each, before any work starts."""

from pathlib import Path
from typing import Any, Protocol

from torch import nn

from weft.errors import ConfigError
from weft.models import Generator
from weft.tasks.pairs.reading import SourceReader
from weft.text.vocabulary import Vocabulary


class Member(Protocol):
    """An opened run (run.py)."""

    @property
    def path(self) -> Path:
        """Its directory."""

    @property
    def task(self) -> Any:
        """What it has learnt."""

    @property
    def model(self) -> nn.Module:
        """Its model, in evaluation mode."""


def joined(member: Member, reading: SourceReader, target: Vocabulary) -> Generator:
    """The member's model, if it reads and writes the same pieces under the same numbers.

    Raises:
        ConfigError: another task, other vocabularies, or sources that are read in another way.
    """
    task, model = member.task, member.model
    if not isinstance(model, Generator) or not isinstance(getattr(task, "target", None), Vocabulary):
        raise ConfigError(f"--ensemble {member.path}: is no run that translates; leave it out")
    for side, own, other in (("source", reading.base, task.source), ("target", target, task.target)):
        if _pieces(own) != _pieces(other):
            raise ConfigError(
                f"--ensemble {member.path}: its {side} vocabulary ({len(other):,} pieces) is not that of the "
                f"first run ({len(own):,} pieces); an ensemble needs runs trained on the same data with the "
                "same section data.vocabulary"
            )
    if (task.reading.cut, task.reading.copies) != (reading.cut, reading.copies):
        raise ConfigError(
            f"--ensemble {member.path}: it cuts its sources, or copies their words, in another way than the "
            "first run; join runs with the same data.cut_source, all or none of them with a pointer"
        )
    return model


def _pieces(vocabulary: Vocabulary) -> list[str]:
    return vocabulary.pieces(range(len(vocabulary)))
