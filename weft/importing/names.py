"""Mappings shared by families: linear layers, norms, attention. Read next: families/gpt2.py."""

from collections.abc import Callable

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Checkpoint, TensorOrigin
from weft.nn.transformer import Activation

ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}


def activation(foreign: Checkpoint, *names: str) -> Activation:
    """Our name of a configuration's activation.

    Raises:
        ConfigError: the activation is not supported.
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
    """For tensors that are taken as they are."""
    return tensor


def plain(ours: str, theirs: str) -> dict[str, TensorOrigin]:
    """The weight and bias of a linear layer x W^T + b or of a norm."""
    return {f"{ours}.{part}": TensorOrigin((f"{theirs}.{part}",), same) for part in ("weight", "bias")}


def joined(ours: str, *theirs: str) -> dict[str, TensorOrigin]:
    """Several linear layers concatenated to one of ours."""
    return {
        f"{ours}.{part}": TensorOrigin(
            tuple(f"{name}.{part}" for name in theirs), lambda *all: torch.cat(all)
        )
        for part in ("weight", "bias")
    }


def tensor(ours: str, theirs: str, make: Callable[..., Tensor] = same) -> dict[str, TensorOrigin]:
    """Our tensor `ours`, made from the checkpoint's `theirs`."""
    return {ours: TensorOrigin((theirs,), make)}


def constant(ours: str, value: Tensor) -> dict[str, TensorOrigin]:
    """A tensor that is not in the checkpoint."""
    return {ours: TensorOrigin((), lambda: value)}


def heads(ours: str, query: str, key: str, value: str, out: str) -> dict[str, TensorOrigin]:
    """Multi-head attention from its four linear layers."""
    return {
        **plain(f"{ours}.query", query),
        **joined(f"{ours}.key_value", key, value),
        **plain(f"{ours}.out", out),
    }


def architecture(foreign: Checkpoint, known: str, *, bare: str = "") -> None:
    """Check that the checkpoint has the output layer that is imported; an old one may not say.

    Args:
        foreign: the checkpoint.
        known: the model with the output layer.
        bare: another one: the model without it, if its embedding table may serve instead, or a classifier.

    Raises:
        ConfigError: it has another one, such as a classifier's.
    """
    found = foreign.config.get("architectures")
    if isinstance(found, list) and found and not {known, bare} & set(map(str, found)):
        supported = " or ".join(filter(None, (known, bare)))
        raise ConfigError(
            f"{foreign.path / 'config.json'}: architectures: expected {supported}, "
            f"as only these of this family can be imported, got {', '.join(map(str, found))[:80]}"
        )


def is_tied(foreign: Checkpoint, table: str, head: str, *, default: bool) -> bool:
    """Whether the output layer uses the embedding table.

    Args:
        foreign: the checkpoint.
        table, head: names of the two tensors.
        default: if config.json does not say.

    Raises:
        CheckpointError: they are said to be one, but differ.
    """
    tied = bool(foreign.config.get("tie_word_embeddings", default))
    both = [foreign.tensors.get(name) for name in (table, head)]
    if tied and both[0] is not None and both[1] is not None and not torch.equal(both[0], both[1]):
        raise CheckpointError(
            f"{foreign.path / 'config.json'}: tie_word_embeddings is true, but {table} and {head} differ; "
            "does it belong to this checkpoint?"
        )
    return tied
