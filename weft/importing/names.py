"""Mappings that families and toolkits share: linear layers, norms, attention, blocks, recurrent layers.

Read next: families/decoders.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Checkpoint, Origins, TensorOrigin
from weft.nn.transformer import Activation

ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}


def activation(
    foreign: Checkpoint,
    *names: str,
    known: Mapping[str, Activation] = ACTIVATIONS,
    default: str | None = None,
) -> Activation:
    """Our name of a configuration's activation."""
    word = foreign.setting(*names, default=default)
    if word not in known:
        supported = ", ".join(known)
        raise ConfigError(f"{foreign.place}: {names[0]}: expected one of {supported}, got {str(word)[:80]}")
    return known[word]


def same(tensor: Tensor) -> Tensor:
    """For tensors that are taken as they are."""
    return tensor


def turned(weight: Tensor) -> Tensor:
    """The matrix of x W as that of x W^T."""
    return weight.T


def plain(ours: str, theirs: str) -> Origins:
    """The weight and bias of a linear layer x W^T + b or of a norm."""
    return {f"{ours}.{part}": TensorOrigin((f"{theirs}.{part}",), same) for part in ("weight", "bias")}


def joined(ours: str, *theirs: str, bias: bool = True) -> Origins:
    """Several linear layers concatenated to one of ours."""
    return {
        f"{ours}.{part}": TensorOrigin(tuple(f"{name}.{part}" for name in theirs), concatenated)
        for part in ["weight"] + ["bias"] * bias
    }


def concatenated(*parts: Tensor) -> Tensor:
    """Rows of several tensors."""
    return torch.cat(parts)


def tensor(ours: str, theirs: str, make: Callable[..., Tensor] = same) -> Origins:
    """Our tensor `ours`, made from the checkpoint's `theirs`."""
    return {ours: TensorOrigin((theirs,), make)}


def zeros(ours: str, size: int) -> Origins:
    """A bias that is not in the checkpoint."""
    return {ours: TensorOrigin((), lambda: torch.zeros(size))}


def tables(source: str, target: str, logits: str) -> Origins:
    """The embedding tables of both sides and the weight of the output layer; names may be equal."""
    return {
        **tensor("source_embed.table.weight", source),
        **tensor("embed.table.weight", target),
        **tensor("head.weight", logits),
    }


def heads(ours: str, query: str, key: str, value: str, out: str) -> Origins:
    """Multi-head attention from its four linear layers."""
    return {
        **plain(f"{ours}.query", query),
        **joined(f"{ours}.key_value", key, value),
        **plain(f"{ours}.out", out),
    }


MappedPart = tuple[dict[str, Any], Origins]
"""The recipe's settings of a part, and the source of each of its tensors."""


class BlockNames(NamedTuple):
    """Names of the tensors of a block of a Transformer, behind the name of the block."""

    attention: Sequence[str]  # query, key, value, output
    attention_norm: str
    first: str  # of the network's two layers
    second: str
    network_norm: str
    look: Sequence[str] = ()  # of a decoder's attention to the encoder, as above
    look_norm: str = ""


FAIRSEQ = BlockNames(
    [f"self_attn.{name}_proj" for name in ("q", "k", "v", "out")],
    "self_attn_layer_norm",
    "fc1",
    "fc2",
    "final_layer_norm",
    [f"encoder_attn.{name}_proj" for name in ("q", "k", "v", "out")],
    "encoder_attn_layer_norm",
)
"""The names of fairseq, which BART, Marian, Pegasus, M2M100 and OPT have too."""


def blocks(ours: str, theirs: str, count: int, names: BlockNames, *, looks: bool = False) -> Origins:
    """The blocks of a Transformer."""
    origins: Origins = {}
    for number in range(count):
        here, there = f"{ours}.{number}", f"{theirs}.{number}"
        origins |= {
            **heads(f"{here}.attention", *(f"{there}.{name}" for name in names.attention)),
            **plain(f"{here}.attention_norm", f"{there}.{names.attention_norm}"),
            **plain(f"{here}.network.first", f"{there}.{names.first}"),
            **plain(f"{here}.network.second", f"{there}.{names.second}"),
            **plain(f"{here}.network_norm", f"{there}.{names.network_norm}"),
        }
        if looks:
            origins |= heads(f"{here}.look", *(f"{there}.{name}" for name in names.look))
            origins |= plain(f"{here}.look_norm", f"{there}.{names.look_norm}")
    return origins


def recurrent(ours: str, theirs: str, kind: str, end: str = "") -> Origins:
    """The tensors of our LSTM, GRU or Elman cell from those of torch.nn.

    The reset gate of a GRU also multiplies the candidate's recurrent bias, so that one has its own place.
    """
    weight_x, weight_h, bias_x, bias_h = (
        f"{theirs}.{name}{end}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    found = tensor(f"{ours}.weight_x", weight_x) | tensor(f"{ours}.weight_h", weight_h)
    if kind != "gru":
        return found | {f"{ours}.bias": TensorOrigin((bias_x, bias_h), torch.add)}

    def gates(x: Tensor, h: Tensor) -> Tensor:
        two_thirds = len(h) * 2 // 3
        return x + torch.cat([h[:two_thirds], torch.zeros_like(h[two_thirds:])])

    return found | {
        f"{ours}.bias": TensorOrigin((bias_x, bias_h), gates),
        **tensor(f"{ours}.bias_n", bias_h, lambda bias: bias[len(bias) * 2 // 3 :]),
    }


def recurrent_encoder(theirs: str, kind: str, count: int, *, both: bool) -> Origins:
    """The layers of a recurrent encoder, in one or both directions; `kind` as in `recurrent`."""
    origins: Origins = {}
    for layer in range(count):
        origins |= recurrent(f"encoder.stack.forwards.{layer}", theirs, kind, f"_l{layer}")
        if both:
            origins |= recurrent(f"encoder.stack.backwards.{layer}", theirs, kind, f"_l{layer}_reverse")
    return origins


def recurrent_part(theirs: str, kind: str, size: int, count: int, *, both: bool, dropout: Any) -> MappedPart:
    """A recurrent encoder whose layers have one size."""
    settings = {
        "use": "recurrent",
        "cell": kind,
        "sizes": [size] * count,
        "bidirectional": both,
        "dropout": dropout,
    }
    return settings, recurrent_encoder(theirs, kind, count, both=both)


def architecture(foreign: Checkpoint, known: str, *, bare: str = "") -> None:
    """Check that the checkpoint has the output layer that is imported; an old one may not say."""
    found = foreign.config.get("architectures")
    if isinstance(found, list) and found and not {known, bare} & set(map(str, found)):
        supported = " or ".join(filter(None, (known, bare)))
        raise ConfigError(
            f"{foreign.place}: architectures: expected {supported}, "
            f"as only these of this family can be imported, got {', '.join(map(str, found))[:80]}"
        )


def is_tied(foreign: Checkpoint, table: str, head: str, *, default: bool) -> bool:
    """Whether the output layer uses the embedding table."""
    tied = bool(foreign.config.get("tie_word_embeddings", default))
    both = [foreign.tensors.get(name) for name in (table, head)]
    if tied and both[0] is not None and both[1] is not None and not torch.equal(both[0], both[1]):
        raise CheckpointError(
            f"{foreign.place}: tie_word_embeddings is true, but {table} and {head} differ; "
            "does it belong to this checkpoint?"
        )
    return tied
