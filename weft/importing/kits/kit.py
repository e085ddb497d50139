"""What a toolkit's file in this folder provides, what the user says about a checkpoint, and the run of both.

A toolkit's file says for each of our tensors which of theirs it is made from (a `TensorOrigin`).
Read next: joeynmt.py, an example; ../names.py, which makes origins; vocabularies.py; ../writing.py.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Origins, complete
from weft.importing.kits.vocabularies import RunVocabulary
from weft.importing.plans import pair_recipe
from weft.importing.vocabularies import PAIR
from weft.importing.writing import RunParts, renumbered


class CheckpointHints(NamedTuple):
    """What the user says about a checkpoint."""

    path: Path  # the checkpoint, a file or a directory
    source: str | None = None  # languages
    target: str | None = None
    train: str = "train"  # prefixes of the data for further training
    valid: str = "valid"
    vocabulary: tuple[Path, ...] = ()  # files elsewhere: one for both, or source and target
    subwords: tuple[Path, ...] = ()  # BPE codes or SentencePiece models, likewise


class Kit(NamedTuple):
    """How checkpoints of a toolkit are recognised and read."""

    name: str  # as its users call it
    looks: str  # what its checkpoint is, for help: "a directory with config.yaml and best.ckpt"
    recognises: Callable[[Path], bool]  # looks at names and, if need be, at the beginning of a file
    read: Callable[[CheckpointHints], RunParts]


def languages(given: CheckpointHints, source: object = None, target: object = None) -> dict[str, str]:
    """The languages for the recipe's section `data`."""
    found = {}
    for name, said, known in (("source", given.source, source), ("target", given.target, target)):
        if said is None and not (isinstance(known, str) and known):
            raise ConfigError(f"{given.path}: does not say its {name} language; give it with --{name} LANG")
        found[name] = said if said is not None else str(known)
    return found


def given_file(files: tuple[Path, ...], option: str, one: int) -> Path | None:
    """The file that the user named for the source (0) or the target (1); None if none was named."""
    if len(files) > 2:
        raise ConfigError(f"--{option}: expected one file for both sides, or two, got {len(files)}")
    if not files:
        return None
    return files[-1] if one else files[0]


def beside(path: Path, *names: str) -> Path:
    """The first of these files in a directory."""
    for name in names:
        if (path / name).is_file():
            return path / name
    raise CheckpointError(f"{path}: expected {' or '.join(names)} in it, got no such file; copy it there")


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
