"""The variants of a recipe: every combination of the values given for some of its keys."""

import re
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from weft.errors import ConfigError

SEED = re.compile(r"(^|\.)seed$")
"""Keys whose values only repeat a variant."""

MOST = 100
"""Maximum number of variants per command."""


class GridVariant(NamedTuple):
    """One combination."""

    name: str  # such as cell=lstm,seed=2
    changes: tuple[str, ...]  # section.key=value
    group: str  # the name without the seed: runs of one group are repetitions


def variants(grids: Sequence[str]) -> list[GridVariant]:
    """Every combination of KEY=VALUE,VALUE; keys joined by + change together.

    Raises:
        ConfigError: a grid cannot be parsed, or there are too many combinations.

    Example:
        >>> [one.name for one in variants(["model.encoder.cell=gru,lstm", "training.seed=1,2"])]
        ['cell=gru,seed=1', 'cell=gru,seed=2', 'cell=lstm,seed=1', 'cell=lstm,seed=2']
        >>> variants(["model.encoder.cell+model.decoder.cell=gru"])[0].changes
        ('model.encoder.cell=gru', 'model.decoder.cell=gru')
    """
    axes = []
    for grid in grids:
        keys, equals, text = grid.partition("=")
        values = split(text)
        if not equals or not all(key.count(".") for key in keys.split("+")) or not all(values):
            raise ConfigError(
                f"--grid {grid}: expected a key of the recipe and its values, such as "
                "model.encoder.cell=elman,lstm"
            )
        if len(set(values)) < len(values):
            raise ConfigError(f"--grid {grid}: expected each value once, got one twice; remove it")
        axes.append([(keys.split("+"), value) for value in values])
    short = [keys[0].rpartition(".")[2] for keys, _ in (axis[0] for axis in axes)]
    whole = len(set(short)) < len(short)  # keys that share a short name are shown in full
    found = [_variant(chosen, whole) for chosen in product(*axes)]
    if len(found) > MOST:
        raise ConfigError(f"--grid: expected at most {MOST} variants, got {len(found)}; give fewer values")
    return found


def _variant(chosen: Sequence[tuple[list[str], str]], whole: bool) -> GridVariant:
    parts = {
        tuple(keys): ",".join(f"{key}={value}" for key in keys)
        if whole
        else f"{keys[0].rpartition('.')[2]}={value}"
        for keys, value in chosen
    }
    rivals = [part for keys, part in parts.items() if not all(map(SEED.search, keys))]
    changes = tuple(f"{key}={value}" for keys, value in chosen for key in keys)
    return GridVariant(",".join(parts.values()), changes, ",".join(rivals) or "the recipe")


def split(text: str) -> list[str]:
    """Split a text at the commas outside brackets.

    Example:
        >>> split("[8,8],{use: lstm, bias: 1},4")
        ['[8,8]', '{use: lstm, bias: 1}', '4']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def folder_name(name: str) -> str:
    """A directory name for a variant.

    Example:
        >>> folder_name("sizes=[8, 8],cell=mine.Leaky")
        'sizes=8,8,cell=mine.Leaky'
    """
    plain = re.sub(r"[^\w.=,+]+", "-", name)
    return re.sub(r"-*([,=])-*", r"\1", plain).strip("-,.")
