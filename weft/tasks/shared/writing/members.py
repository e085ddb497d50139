"""Runs that search together as an ensemble: checks beforehand that they fit together."""

from pathlib import Path
from typing import Protocol

from torch import nn

from weft.errors import ConfigError
from weft.models import Generator
from weft.tasks.task import Pipeline
from weft.text.vocabulary import Vocabulary


class Member(Protocol):
    """An opened run (weft.run)."""

    @property
    def path(self) -> Path:
        """The run's directory."""

    @property
    def pipeline(self) -> Pipeline:
        """The run's Pipeline, with its vocabularies."""

    @property
    def model(self) -> nn.Module:
        """The run's model, in evaluation mode."""


def joined(member: Member, pipeline: Pipeline) -> Generator:
    """The member's model, if it reads and writes the same under the same numbers as the first run.

    Args:
        member: another run.
        pipeline: of the first run; what both must share is what its `common` gives.

    Raises:
        ConfigError: the member has another task, other vocabularies or another input.
    """
    model, own, its = member.model, pipeline.common(), member.pipeline.common()
    if not isinstance(model, Generator) or its.keys() != own.keys():
        raise ConfigError(
            f"--ensemble {member.path}: is a run of another kind of task than the first; leave it out"
        )
    for what, first in own.items():
        other = its[what]
        if other == first:
            continue
        if isinstance(first, list):
            raise ConfigError(
                f"--ensemble {member.path}: its {what} ({len(other):,} pieces) is not that of the "
                f"first run ({len(first):,} pieces); an ensemble needs runs trained on the same data with "
                "the same section data.vocabulary"
            )
        raise ConfigError(
            f"--ensemble {member.path}: its {what} is {other}, that of the first run {first}; an ensemble "
            "needs runs that read and write the same"
        )
    return model


def pieces(vocabulary: Vocabulary) -> list[str]:
    """Every piece in the order of its number."""
    return vocabulary.pieces(range(len(vocabulary)))
