"""What families share: a product, a norm, a block of theirs as one of ours. Read next: gpt2.py."""

from collections.abc import Callable

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.importing.checkpoint import Foreign, Origin
from weft.nn.transformer import Activation

ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}


def activation(foreign: Foreign, *names: str) -> Activation:
    """Our word for a configuration's activation.

    Raises:
        ConfigError: there is none.
    """
    word = foreign.setting(*names)
    if word not in ACTIVATIONS:
        found = str(word)[:80]
        raise ConfigError(
            f"{foreign.path / 'config.json'}: {names[0]}: expected one of "
            f"{', '.join(ACTIVATIONS)}, got {found}"
        )
    return ACTIVATIONS[word]


def same(tensor: Tensor) -> Tensor:
    """As it is."""
    return tensor


def plain(ours: str, theirs: str) -> dict[str, Origin]:
    """A weight and a bias: of a product x W^T + b, or of a norm."""
    return {f"{ours}.{part}": Origin((f"{theirs}.{part}",), same) for part in ("weight", "bias")}


def joined(ours: str, *theirs: str) -> dict[str, Origin]:
    """Several products that are one of ours, beside each other."""
    return {
        f"{ours}.{part}": Origin(tuple(f"{name}.{part}" for name in theirs), lambda *all: torch.cat(all))
        for part in ("weight", "bias")
    }


def tensor(ours: str, theirs: str, make: Callable[..., Tensor] = same) -> dict[str, Origin]:
    """One tensor."""
    return {ours: Origin((theirs,), make)}


def constant(ours: str, value: Tensor) -> dict[str, Origin]:
    """A tensor that no checkpoint holds."""
    return {ours: Origin((), lambda: value)}


def heads(ours: str, query: str, key: str, value: str, out: str) -> dict[str, Origin]:
    """An attention of many heads from its four products."""
    return {
        **plain(f"{ours}.query", query),
        **joined(f"{ours}.key_value", key, value),
        **plain(f"{ours}.out", out),
    }
