"""The contract of an optimiser: its settings, and how to build it for a model.

A class in this folder holds plain numbers; `build` makes the torch optimiser. The loop sets the learning rate
of every group before each update: `lr` times the factor of the schedule.
Read next: adamw.py; ../schedules/schedule.py.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import nn

from weft.errors import ConfigError


class Optimiser(ABC):
    """Settings of an optimiser.

    Attributes:
        lr: learning rate, which the factor of the schedule multiplies.
    """

    lr: float

    @abstractmethod
    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """Make the torch optimiser over every trainable parameter of the model."""


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """Every parameter with a gradient, tied ones once."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def decay_groups(model: nn.Module, weight_decay: float, decay_all: bool) -> list[dict[str, Any]]:
    """Parameter groups with and without weight decay.

    Without `decay_all`, only matrices decay: not biases and norm gains, which have one dimension, and not
    embeddings, whose rare rows would shrink without being read.
    """
    if decay_all:
        return [{"params": trainable(model), "weight_decay": weight_decay}]
    embeddings = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding)
        for parameter in module.parameters(recurse=False)
    }
    parameters = trainable(model)
    chosen = [parameter.dim() > 1 and id(parameter) not in embeddings for parameter in parameters]
    groups = [
        {"params": [p for p, c in zip(parameters, chosen, strict=True) if c], "weight_decay": weight_decay},
        {"params": [p for p, c in zip(parameters, chosen, strict=True) if not c], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def can_fuse(model: nn.Module, devices: tuple[str, ...] = ("cpu", "cuda")) -> bool:
    """Whether torch's fused step applies: 4 to 5 times faster than its loop on a CPU (AdamW, 3M weights)."""
    return all(p.is_floating_point() and p.device.type in devices for p in trainable(model))


def check_betas(name: str, betas: tuple[float, float]) -> None:
    """Check the decay rates of running means.

    Raises:
        ConfigError: a number is not in [0, 1).
    """
    for number in betas:
        if not 0 <= number < 1:
            raise ConfigError(f"{name}: betas: expected two numbers from 0 to below 1, got {list(betas)}")


def check_settings(name: str, **numbers: float) -> None:
    """Check that numbers are not negative.

    Raises:
        ConfigError: one is; the message names the setting.
    """
    for key, number in numbers.items():
        if not number >= 0:
            raise ConfigError(f"{name}: expected {key} of at least 0, got {number}")
