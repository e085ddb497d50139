"""Activations of step-wise, Elman and Jordan networks, by name.

Read next: cells/stepwise.py.
"""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.errors import ConfigError

Activation = Literal["tanh", "sigmoid", "relu", "leaky_relu", "elu", "maxout"]
"""Activation of a hidden layer."""

Recurrent = Literal["tanh", "sigmoid", "relu", "leaky_relu", "elu", "maxout", "modrelu"]
"""Activation of a recurrence; `modrelu` has its own bias."""

Output = Literal["identity", "softmax", "tanh", "sigmoid", "relu", "leaky_relu", "elu", "maxout"]
"""Activation of an output layer."""

SLOPE = 0.1  # of the leaky ReLU for negative inputs
PIECES = 2  # linear functions per maxout unit


def pieces(name: str) -> int:
    """Number of energies per unit: 2 for maxout, otherwise 1."""
    return PIECES if name == "maxout" else 1


def activate(energy: Tensor, name: str) -> Tensor:
    """g(energy).

    Source: maxout: Goodfellow 2013, "Maxout networks"; ELU: Clevert 2016, equation 15 with alpha = 1.

    Example:
        >>> import torch
        >>> activate(torch.tensor([-1.0, 2.0]), "leaky_relu").tolist()
        [-0.10000000149011612, 2.0]
    """
    match name:
        case "tanh":
            return torch.tanh(energy)
        case "sigmoid":
            return torch.sigmoid(energy)
        case "relu":
            return torch.relu(energy)
        case "leaky_relu":
            return F.leaky_relu(energy, SLOPE)
        case "elu":
            return F.elu(energy)
        case "maxout":
            return torch.stack(energy.chunk(PIECES, -1)).amax(0)
        case "softmax":
            return torch.softmax(energy, -1)
        case "identity":
            return energy
    raise ConfigError(f"activation: {name!r} is unknown; take one of {', '.join(get_args(Output))}")


def modrelu(energy: Tensor, bias: Tensor) -> Tensor:
    """sign(z) relu(|z| + b) with b [H]; Arjovsky 2016, equation 8, for real z as in Helfrich 2018."""
    return energy.sign() * torch.relu(energy.abs() + bias)
