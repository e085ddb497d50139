"""The run of a toolkit's translator, from settings, tensors and vocabularies.

A toolkit's file says for each of our tensors which of theirs it is made from (a `TensorOrigin`).
Read next: ../names.py, which makes origins; vocabularies.py; ../writing.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from weft.errors import CheckpointError
from weft.importing.checkpoint import Origins, complete
from weft.importing.kits.kit import CheckpointHints, languages
from weft.importing.kits.vocabularies import RunVocabulary
from weft.importing.plans import pair_recipe
from weft.importing.vocabularies import PAIR
from weft.importing.writing import RunParts, renumbered

SOURCE, TARGET = "source_embed.table.weight", "embed.table.weight"


class ToolkitTranslator(NamedTuple):
    """What a toolkit's file makes of a checkpoint."""

    model: dict[str, Any]  # the recipe's section: encoder, decoder, smoothing
    embedding: dict[str, Any]  # of both sides
    origins: Origins  # the source of each of our tensors
    tensors: Mapping[str, Tensor]  # of the checkpoint
    place: str  # of the checkpoint, for errors
    decoding: dict[str, Any]  # search settings
    spare: tuple[str, ...] = ()  # ends of the names of tensors that are not needed
    positions: int = 129  # that the model has, if they are limited


def assembled(
    given: CheckpointHints,
    translator: ToolkitTranslator,
    found: Sequence[RunVocabulary],
    named: tuple[object, object] = (None, None),
) -> RunParts:
    """The parts of a run."""
    place = translator.place
    recipe = pair_recipe(
        languages(given, *named) | {"train": given.train, "valid": given.valid},
        translator.model,
        translator.embedding,
        most=translator.positions,
        decoding=translator.decoding,
    )
    state = mapped(translator.tensors, translator.origins, place, spare=translator.spare)
    source, target = (one.order for one in found)
    orders = {SOURCE: source, **dict.fromkeys((TARGET, "head.weight", "head.bias"), target)}
    for name, order in orders.items():
        if max(order) + 1 != len(state[name]):
            side = "source" if name == SOURCE else "target"
            raise CheckpointError(
                f"{place}: has {len(state[name]):,} {side} tokens, the vocabulary {max(order) + 1:,}; "
                "does it belong to this model?"
            )
    state = renumbered(state, orders)
    return RunParts(recipe, {file: one.vocabulary for file, one in zip(PAIR, found, strict=True)}, state)


def mapped(
    tensors: Mapping[str, Tensor], origins: Origins, place: str, *, spare: Sequence[str] = ()
) -> dict[str, Tensor]:
    """Our tensors by name."""
    complete(tensors, origins, place, spare=spare, hint="do these settings belong to it?")
    found = {}
    for name, origin in origins.items():
        try:
            found[name] = origin.make(*(tensors[each] for each in origin.names))
        except (RuntimeError, IndexError, ValueError) as error:
            sizes = ", ".join(f"{each} {list(tensors[each].shape)}" for each in origin.names)
            raise CheckpointError(
                f"{place}: {sizes} cannot become {name}; do these settings belong to it?"
            ) from error
    return found
