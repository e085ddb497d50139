"""Rotary positions of a checkpoint, also scaled ones. Read next: llama.py; ../../nn/distances.py."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.importing.checkpoint import Checkpoint

SCALINGS = ("default", "linear", "llama3", "yarn")
"""Values of rope_type that can be imported."""


class Rotation(NamedTuple):
    """Settings of rotary positions."""

    base: float
    share: float  # of the features of a head
    scaling: dict[str, Any]  # of the decoder's position_scaling; empty for none

    @property
    def settings(self) -> dict[str, Any]:
        """Of our decoder, as in a recipe."""
        more = {"position_scaling": self.scaling} if self.scaling else {}
        return {"positions": "rotary", "position_base": self.base, **more}


def rotation(
    foreign: Checkpoint,
    *,
    theta: str = "rope_theta",
    share: str = "partial_rotary_factor",
    usual: float = 1.0,
) -> Rotation:
    """The settings of rotary positions."""
    table: dict[str, Any] = {}
    kind: Any = "default"
    for one in (foreign.config.get(name) or {} for name in ("rope_parameters", "rope_scaling")):
        kind = one.get("rope_type", one.get("type", kind)) if isinstance(one, dict) else one
        if not isinstance(one, dict) or kind not in SCALINGS:
            known = " or ".join(SCALINGS)
            raise ConfigError(f"{foreign.place}: rope_type: expected {known}, got {str(kind)[:40]}")
        table |= one

    def number(name: str, default: Any, older: str = "") -> float:
        value = table.get(name, foreign.config.get(older or name))
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
            raise ConfigError(f"{foreign.place}: {name}: expected a positive number, got {str(value)[:40]}")
        return float(value)

    scaling: dict[str, Any] = {}
    if kind != "default":
        most = foreign.config.get("max_position_embeddings")
        scaling = {"kind": kind} | _scaling(table, kind, most, number)
    base = number("rope_theta", 10000.0, theta)
    if kind == "yarn" and base <= 1:
        raise ConfigError(f"{foreign.place}: rope_theta: expected a number above 1 for yarn, got {base:g}")
    return Rotation(base, number("partial_rotary_factor", usual, share), scaling)


def _scaling(
    table: dict[str, Any], kind: str, most: Any, number: Callable[..., float]
) -> dict[str, float | bool]:
    """Our settings of scaled positions, as the library reads its own."""
    if kind == "linear":
        return {"factor": number("factor", None)}
    length = number("original_max_position_embeddings", most)
    found: dict[str, float | bool] = {"length": int(length)}
    if kind == "llama3":
        low, high = (number(f"{name}_freq_factor", None) for name in ("low", "high"))
        return found | {"factor": number("factor", None), "low": low, "high": high}
    factor = number("factor", float(most or 0) / length)
    grown, names = 0.1 * math.log(max(factor, 1.0)), ("mscale", "mscale_all_dim")
    usual = 1.0 + grown
    if all(map(table.get, names)):
        usual = (1.0 + grown * number(names[0], 1.0)) / (1.0 + grown * number(names[1], 1.0))
    attention = number("attention_factor", usual)
    turns = {"slow": number("beta_slow", 1.0), "fast": number("beta_fast", 32.0)}
    return (
        found | turns | {"factor": factor, "attention": attention, "whole": bool(table.get("truncate", True))}
    )


def paired(num_heads: int, rotated: int) -> Callable[[Tensor], Tensor]:
    """Reorder the features of each head, [H K, ..], for rotary positions.

    Llama and GPT-NeoX rotate features i and i + R/2 together, Weft 2 i and 2 i + 1, of the first R features.
    """

    def reordered(rows: Tensor) -> Tensor:
        each = rows.unflatten(0, (num_heads, -1))
        first = each[:, :rotated].unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)
        return torch.cat([first, each[:, rotated:]], 1).flatten(0, 1)

    return reordered
