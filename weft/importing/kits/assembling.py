"""The run of a toolkit's translator, from settings, tensors and vocabularies. Read next: ../writing.py."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from weft.importing.checkpoint import TensorOrigin
from weft.importing.kits.kit import CheckpointHints, languages
from weft.importing.kits.mapping import mapped, renumbered
from weft.importing.kits.vocabularies import RunVocabulary
from weft.importing.plans import pair_recipe
from weft.importing.vocabularies import PAIR
from weft.importing.writing import RunParts


class ToolkitTranslator(NamedTuple):
    """What a toolkit's file makes of a checkpoint."""

    model: dict[str, Any]  # the recipe's section: encoder, decoder, smoothing
    embedding: dict[str, Any]  # of both sides
    origins: Mapping[str, TensorOrigin]  # the source of each of our tensors
    tensors: Mapping[str, Tensor]  # of the checkpoint
    place: str  # of the checkpoint, for errors
    decoding: dict[str, Any]  # search settings
    spare: tuple[str, ...] = ()  # ends of the names of tensors that are not needed
    positions: int = 129  # that the model has, if they are limited


def assembled(
    given: CheckpointHints,
    translator: ToolkitTranslator,
    found: tuple[RunVocabulary, RunVocabulary],
    named: tuple[object, object] = (None, None),
) -> RunParts:
    """The parts of a run.

    Args:
        given: what the user said.
        translator: the model.
        found: the vocabularies of the source and the target.
        named: their languages, if the checkpoint says them.

    Raises:
        CheckpointError: tensors are missing, left over, or do not fit the vocabularies.
        ConfigError: the languages are not known.
    """
    place = translator.place
    recipe = pair_recipe(
        languages(given, *named) | {"train": given.train, "valid": given.valid},
        translator.model,
        translator.embedding,
        most=translator.positions,
        decoding=translator.decoding,
    )
    state = mapped(translator.tensors, translator.origins, place, spare=translator.spare)
    state = renumbered(state, found[0].order, found[1].order, place)
    return RunParts(recipe, {file: one.vocabulary for file, one in zip(PAIR, found, strict=True)}, state)
