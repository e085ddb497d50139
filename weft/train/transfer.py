"""Start with some parts of another run, such as the encoder and the embeddings of a masked model.

When a run begins, the parts are written into it (`pack`), so that the other run is not needed again; when the
model is built, they are copied into it (`take`). The rows of a table are found by the names of their pieces:
the vocabularies may differ. Read next: tuned.py; ../store/weights.py; ../tasks/task.py, `rows`.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import CheckpointError, ConfigError
from weft.nn.embed.tokens import Tokens
from weft.store import jsonfile, weights
from weft.train.tuned import find_part
from weft.wording import plural

SETTING = "training.start_parts"
VOCABULARY = "vocabulary"
"""The name, among the parts, of the file tokenizer.json."""


class PartsOrigin(jsonfile.Schema):
    """Where the parts of a start.safetensors come from; in its metadata."""

    run: str
    parts: dict[str, str]  # path in the new model, as the recipe names it, by key in the file
    rows: list[list[str]]  # names of the rows of tables, each list once
    named: dict[str, jsonfile.Count]  # the list of a tensor, as a place in `rows`
    scales: dict[str, float]  # of the vectors of a table; see nn/embed/tokens.py


def by_part(parts: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """The parts to take: the name in the new model, and in the other one.

    Example:
        >>> by_part(["encoder"]), by_part({"source_embed": "embed"})
        ({'encoder': 'encoder'}, {'source_embed': 'embed'})
    """
    found = dict(parts) if isinstance(parts, Mapping) else {part: part for part in parts}
    found.pop(VOCABULARY, None)
    return found


def pack(model: nn.Module, rows: Mapping[str, Sequence[str]], parts: Mapping[str, str], run: Path) -> bytes:
    """The parts of a trained model as a file."""
    state = dict(model.named_parameters(remove_duplicate=False))
    kept: dict[str, Tensor] = {}
    lists: list[list[str]] = []
    named: dict[str, int] = {}
    scales: dict[str, float] = {}
    for number, theirs in enumerate(parts.values()):
        path = find_part(model, theirs, f"{SETTING}: the run {run}")
        for name in state:
            if name.startswith(f"{path}."):
                key = f"{number}.{name.removeprefix(f'{path}.')}"
                kept[key] = state[name].detach()
                scales[key] = _scale(model, name)
                if name in rows:
                    own = list(rows[name])
                    named[key] = lists.index(own) if own in lists else len(lists)
                    lists += [own] if named[key] == len(lists) else []
    by_key = {str(number): own for number, own in enumerate(parts)}
    origin = PartsOrigin(run=str(run), parts=by_key, rows=lists, named=named, scales=scales)
    return weights.pack(kept, **{SETTING: json.dumps(jsonfile.plain(origin))})


def take(model: nn.Module, rows: Mapping[str, Sequence[str]], file: Path) -> str:
    """Copy the parts of a file from `pack` into a new model, and say what; "" if it has a whole model."""
    known = weights.metadata(file).get(SETTING)
    if known is None:
        return ""
    try:
        origin = jsonfile.decode(known, PartsOrigin)
        if max(origin.named.values(), default=0) >= max(1, len(origin.rows)):
            raise ValueError("it names rows that it does not have")
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{file}: is damaged ({error}); delete the run and train again") from error
    state, given = dict(model.named_parameters(remove_duplicate=False)), weights.load(file)
    said = []
    for number, part in origin.parts.items():
        path = find_part(model, part, SETTING)
        own = [name for name in state if name.startswith(f"{path}.")]
        theirs = {key.removeprefix(f"{number}."): key for key in given if key.startswith(f"{number}.")}
        _check_names(part, [name.removeprefix(f"{path}.") for name in own], list(theirs), origin.run)
        found = ""
        for name in own:
            key = theirs[name.removeprefix(f"{path}.")]
            place = origin.named.get(key)
            names_there = None if place is None else origin.rows[place]
            scaled = given[key] * (origin.scales.get(key, 1.0) / _scale(model, name))
            found = _copy(state[name], scaled, rows.get(name), names_there, name, origin.run) or found
        said.append(f"{part} ({found or plural(len(own), 'tensor')})")
    return f"starts with {', '.join(said)} of {origin.run}"


def _scale(model: nn.Module, name: str) -> float:
    """By what a module multiplies the rows of its table; 1 for other weights."""
    parent = (
        model.get_submodule(name.removesuffix(".table.weight")) if name.endswith(".table.weight") else None
    )
    return parent.scale if isinstance(parent, Tokens) else 1.0


def _check_names(part: str, own: Sequence[str], theirs: Sequence[str], run: str) -> None:
    missing = [name for name in own if name not in theirs]
    foreign = [name for name in theirs if name not in own]
    if missing or foreign:
        more = f"has no {missing[0]}" if missing else f"has {foreign[0]}, which this model lacks"
        raise CheckpointError(
            f"{SETTING}: {part}: this part of {run} {more}; set model.{part} as in that run"
        )


def _copy(
    own: Tensor,
    theirs: Tensor,
    rows: Sequence[str] | None,
    rows_there: Sequence[str] | None,
    name: str,
    run: str,
) -> str:
    """Copy a tensor, or the rows with shared names; returns how many these were."""
    by_name = rows is not None and rows_there is not None
    if (rows is None) != (rows_there is None):
        raise CheckpointError(
            f"{SETTING}: {name}: its rows have names in only one of the two runs; leave this part out"
        )
    if own.shape[by_name:] != theirs.shape[by_name:] or own.dtype != theirs.dtype:
        raise CheckpointError(
            f"{SETTING}: {name}: expected {list(own.shape)}, as in this model, got {list(theirs.shape)} "
            f"in {run}; use the sizes of that run, or leave this part out"
        )
    with torch.no_grad():
        if rows is None or rows_there is None:
            own.copy_(theirs)
            return ""
        if len(rows) != len(own) or len(rows_there) != len(theirs):
            raise CheckpointError(
                f"{SETTING}: {name}: its {len(theirs)} rows do not fit the {len(rows_there)} names of its "
                f"pieces in {run}; train that run anew"
            )
        there = {piece: number for number, piece in enumerate(rows_there)}
        shared = [number for number, piece in enumerate(rows) if piece in there]
        own[shared] = theirs[[there[rows[number]] for number in shared]].to(own.device)
    rest = len(rows) - len(shared)
    left = f", {rest:,} keep their initial values" if rest else ""
    return f"{len(shared):,} of {len(rows):,} rows{left}"


def check_settings(own: Mapping[str, Any], theirs: Mapping[str, Any], parts: Mapping[str, str]) -> None:
    """Check that a part is built with the same settings as in the other run; dropout may differ."""
    for part, there in parts.items():
        here, before = own.get(part), theirs.get(there)
        if not isinstance(here, Mapping) or not isinstance(before, Mapping):
            continue
        for key in {**before, **here}:
            if key in here and key in before and "dropout" not in key and here[key] != before[key]:
                raise ConfigError(
                    f"{SETTING}: {part}: model.{part}.{key} is {before[key]} in that run and {here[key]} "
                    "here; set it to the same value"
                )
