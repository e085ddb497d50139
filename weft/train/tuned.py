"""Freeze parts of a model, give parts and layers learning rates of their own, or adapt matrices (LoRA).

The settings are `freeze`, `freeze_updates`, `part_rates`, `layer_decay` and `lora` of settings.py. What LoRA
adds to a matrix W of a trained model is a product of two narrow ones: W' = W + (alpha / r) B A, with A [r, I]
random and B [O, r] zero at first, so that training begins with the model as it was. Checkpoints and the run
keep W, A and B; whatever opens the run gets W' (`weights.merged`). Read next: update.py, which multiplies the
rate of each group by its `scale`; ready.py, which calls `adapt`.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from weft.errors import ConfigError
from weft.setting_types import AtLeastOne, Positive, check_fields
from weft.store.weights import plus_low_rank
from weft.wording import close_name

LAYER = re.compile(r"^(.*\b(?:blocks|forwards|backwards|layers|stages|convolutions))\.(\d+)\.")
"""A stack of layers in the path of a weight, and the number of the layer."""

EMBEDDING = re.compile(r"^((?:.*\.)?)(?:source_)?embed\.")
"""An embedding in the path of a weight; the first group is what it shares with its encoder or decoder."""

ENTRY = re.compile(r"^((?:.*\.)?)(?:positions|entry_norm)\.")
"""What a stack of layers adds to the embeddings or does to them; the first group is its path."""


class FrozenParts:
    """Parts of a model that are not trained: no gradient, no state in the optimiser, no dropout.

    Nothing is frozen before `at` is called. A table gives each part the number of updates after which it is
    trained too, `updates` that of parts without one of their own; 0 for never.
    """

    def __init__(self, model: nn.Module, parts: Sequence[str] | Mapping[str, int], updates: int) -> None:
        given = dict(parts) if isinstance(parts, Mapping) else dict.fromkeys(parts, updates)
        modules = dict(model.named_modules(remove_duplicate=False))
        own = {name: one for name, one in model.named_parameters(remove_duplicate=False) if one.requires_grad}
        self._modules: list[tuple[nn.Module, int]] = []
        self._parameters: list[tuple[nn.Parameter, int]] = []
        for part, number in given.items():
            for path in matching(model, part, "training.freeze"):
                self._modules += [(modules[path], number)] if path in modules else []
                self._parameters += [(own[name], number) for name in own if inside(name, [path])]
        if self._modules and {id(one) for one in own.values()} == {id(one) for one, _ in self._parameters}:
            raise ConfigError("training.freeze: leaves nothing to train; leave out a part")

    def at(self, update: float) -> None:
        """Freeze or release the parts, as it is due after so many updates; after infinity, all but some."""
        frozen = {id(one) for one, number in self._parameters if not number or update < number}
        for parameter, _ in self._parameters:
            parameter.requires_grad_(id(parameter) not in frozen)
        for module, number in self._modules:
            still = not number or update < number
            if module.training == still:
                module.train(not still)


def scales(model: nn.Module, rates: Mapping[str, float], decay: float) -> dict[str, float]:
    """Factors of the learning rate, by the name of the parameter.

    Source: Howard and Ruder 2018, section 3.2 (discriminative fine-tuning), where each layer has the rate of
        the one above, divided by 2.6.
    """
    by_path = {
        path: rate for part, rate in rates.items() for path in matching(model, part, "training.part_rates")
    }
    every = [name for name, _ in model.named_parameters()]
    heights: dict[str, int] = {}
    for name in every:
        if layer := LAYER.match(name):
            heights[layer[1]] = max(heights.get(layer[1], 0), int(layer[2]) + 1)
    return {
        name: by_path.get(inside(name, by_path), 1.0) * decay ** _below_top(name, heights) for name in every
    }


def _below_top(name: str, heights: Mapping[str, int]) -> int:
    """How many layers lie above a weight; 0 outside of stacks."""
    if layer := LAYER.match(name):
        return heights[layer[1]] - 1 - int(layer[2])
    if found := ENTRY.match(name):
        return max((height for stack, height in heights.items() if stack.startswith(found[1])), default=0)
    if found := EMBEDDING.match(name):
        fed = tuple(f"{found[1]}{part}." for part in ("encoder", "decoder"))
        return max((height for stack, height in heights.items() if stack.startswith(fed)), default=0)
    return 0


def apply(optimiser: torch.optim.Optimizer, model: nn.Module, factors: Mapping[str, float]) -> None:
    """Split the groups of a new optimiser by the factors of the learning rate, `scale`, in place."""
    known = {id(parameter): factors[name] for name, parameter in model.named_parameters()}
    groups = []
    for group in optimiser.param_groups:
        by_scale: dict[float, list[nn.Parameter]] = {}
        for parameter in group["params"]:
            by_scale.setdefault(known.get(id(parameter), 1.0), []).append(parameter)
        groups += [{**group, "params": own, "scale": scale} for scale, own in by_scale.items()]
    optimiser.param_groups = groups


def find_part(model: nn.Module, name: str, setting: str) -> str:
    """The path of a part in a model: the module of that path, or the outermost one that ends with it."""
    paths = [path for path, module in model.named_modules(remove_duplicate=False) if path]
    found = [path for path in paths if path == name or path.endswith(f".{name}")]
    filled = [path for path in found if model.get_submodule(path).state_dict()]
    chosen = min(filled, key=lambda path: path.count("."), default="")
    if not chosen:
        raise unknown(model, paths, name, setting)
    return chosen


def matching(model: nn.Module, name: str, setting: str, *, every: bool = False) -> list[str]:
    """The paths of the parts and weights that a name or a pattern such as encoder.*.norm stands for.

    A name stands for the outermost part, or for every one of that name.

    Example:
        >>> wrapped = nn.Sequential(nn.ModuleDict({"encoder": nn.Linear(2, 3)}))
        >>> matching(wrapped, "encod*", "training.freeze"), matching(wrapped, "*.bias", "training.freeze")
        (['0.encoder'], ['0.encoder.bias'])
    """
    if "*" not in name and not every:
        return [find_part(model, name, setting)]
    modules = [path for path, one in model.named_modules(remove_duplicate=False) if path and one.state_dict()]
    paths = [*modules, *(path for path, _ in model.named_parameters(remove_duplicate=False))]
    found = [path for path in paths if fnmatchcase(path, name) or fnmatchcase(path, f"*.{name}")]
    if not found:
        raise unknown(model, paths, name, setting)
    return [path for path in found if not inside(path, [one for one in found if one != path])]


def unknown(model: nn.Module, paths: Sequence[str], name: str, setting: str) -> ConfigError:
    """An error about a name that no part of the model has, with one that is near."""
    parts = {path.rpartition(".")[2]: None for path in paths if not path.rpartition(".")[2].isdigit()}
    near = close_name(name, [*parts, *paths])
    hint = f"; did you mean {near!r}?" if near else ""
    return ConfigError(f"{setting}: expected one of {', '.join(names(model))}, got {name[:80]!r}{hint}")


def names(model: nn.Module) -> list[str]:
    """The parts that a user may want to name: the modules with weights, without a wrapper around all."""
    return list(parts_of(model))


def parts_of(model: nn.Module) -> dict[str, nn.Module]:
    """These parts by name."""
    while len(children := [one for one in model.named_children() if one[1].state_dict()]) == 1:
        model = children[0][1]
    return dict(children)


def inside(path: str, parts: Collection[str]) -> str:
    """The longest of these parts that a weight lies in; "" if it lies in none.

    Example:
        >>> inside("encoder.blocks.0.weight", ["encoder", "encoder.blocks", "enc"])
        'encoder.blocks'
    """
    return max((part for part in parts if path == part or path.startswith(f"{part}.")), key=len, default="")


TARGETS = "training.lora.targets"

OUTER = ("head", "pool")
"""Parts that are new in a model for another task, and are trained whole."""


@dataclass(frozen=True, kw_only=True)
class Lora:
    """W' = W + (alpha / rank) B A for some matrices W; only A, B, the head and a pool are trained.

    Args:
        rank: rows of A and columns of B.
        alpha: the product counts alpha / rank times, so that another rank needs no other learning rate.
        targets: linear layers, all of a name or a pattern: query, encoder.blocks.0, "encoder.*.out".

    Source: Hu et al. 2022, section 4.1.
    """

    rank: AtLeastOne = 8
    alpha: Positive = 16.0
    targets: tuple[str, ...] = ("query", "key_value")

    def __post_init__(self) -> None:
        check_fields(self, "training.lora.")


class LowRank(nn.Module):
    """Makes W' of W [O, I], for torch's parametrize; s = alpha / r."""

    scale: Tensor

    def __init__(self, weight: Tensor, rank: int, alpha: float) -> None:
        super().__init__()
        rows, columns = weight.shape
        self.a = nn.Parameter(weight.new_empty(rank, columns))
        self.b = nn.Parameter(weight.new_zeros(rows, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.register_buffer("scale", weight.new_tensor(alpha / rank))
        self._merged: Tensor | None = None

    def train(self, mode: bool = True) -> "LowRank":
        self._merged = None
        return super().train(mode)

    def forward(self, weight: Tensor) -> Tensor:
        """W'; in evaluation mode it is computed once, as compiled code keeps its address."""
        with torch.autocast(weight.device.type, enabled=False):
            if self.training:
                return plus_low_rank(weight, self.a, self.b, self.scale)
            if self._merged is None:
                with torch.inference_mode(False), torch.no_grad():
                    self._merged = plus_low_rank(weight, self.a, self.b, self.scale)
            return self._merged


def adapt(model: nn.Module, how: Lora) -> None:
    """Add the narrow matrices to a model, in place; only they, the head and a pool are trained."""
    parts = parts_of(model)
    inner = [part for name, part in parts.items() if name not in OUTER]
    taken = {id(one): one for part in inner for one in part.modules()}
    chosen: dict[int, nn.Linear] = {}
    for target in how.targets:
        paths = matching(model, target, TARGETS, every=True)
        named = (one for path, one in model.named_modules() if inside(path, paths) and id(one) in taken)
        linear = {id(one): one for one in named if isinstance(one, nn.Linear)}
        if not linear:
            raise ConfigError(
                f"{TARGETS}: expected linear layers, such as query, got {target!r}, which has none"
            )
        chosen |= linear
    fixed = {id(one) for part in inner for one in part.parameters()}
    for parameter in model.parameters():
        parameter.requires_grad_(id(parameter) not in fixed)
    for module in chosen.values():
        parametrize.register_parametrization(module, "weight", LowRank(module.weight, how.rank, how.alpha))
