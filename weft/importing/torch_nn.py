"""Convert torch.nn modules with their weights to parts of Weft with the same outputs."""

import copy
from typing import Any

import torch
from torch import nn

from weft.errors import ConfigError
from weft.importing.names import recurrent_encoder
from weft.nn.attention import MultiHead
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.recurrent import Stack


def from_torch(module: nn.Module) -> Stack | MultiHead | TransformerEncoder:
    """Convert a torch.nn module to the part of Weft that computes the same, always with batch rows first.

    Args:
        module: an RNN, LSTM, GRU, MultiheadAttention or TransformerEncoder.

    Raises:
        ConfigError: the module or one of its settings is not supported.

    Example:
        >>> theirs = nn.LSTM(3, 5, bidirectional=True, batch_first=True)
        >>> x = torch.randn(2, 7, 3)
        >>> torch.allclose(from_torch(theirs)(x)[0], theirs(x)[0], atol=1e-6)
        True
    """
    if isinstance(module, nn.RNNBase):
        return _recurrent(module)
    if isinstance(module, nn.MultiheadAttention):
        return _heads(module)
    if isinstance(module, nn.TransformerEncoder):
        return _encoder(module)
    raise ConfigError(
        "expected an RNN, LSTM, GRU, MultiheadAttention or TransformerEncoder of torch.nn, "
        f"got {type(module).__name__}"
    )


def _recurrent(theirs: nn.RNNBase) -> Stack:
    if theirs.proj_size:
        raise ConfigError(f"proj_size: expected an LSTM without projection, got {theirs.proj_size}")
    activation = "relu" if theirs.mode == "RNN_RELU" else "tanh"

    def cell(in_size: int, size: int) -> Elman | LSTM | GRU:
        if theirs.mode == "LSTM":
            return LSTM(in_size, size)
        return GRU(in_size, size) if theirs.mode == "GRU" else Elman(in_size, size, activation=activation)

    sizes = (theirs.hidden_size,) * theirs.num_layers
    stack = Stack(
        theirs.input_size, sizes, cell=cell, bidirectional=theirs.bidirectional, dropout=theirs.dropout
    )
    ours: Stack = _like(stack, theirs)
    weights = {f"rnn.{name}": one for name, one in theirs.state_dict().items()}
    if not theirs.bias:
        weights |= {name.replace("weight", "bias"): one.new_zeros(len(one)) for name, one in weights.items()}
    origins = recurrent_encoder("rnn", theirs.mode.lower(), len(sizes), both=theirs.bidirectional)
    made = {name: origin.make(*(weights[one] for one in origin.names)) for name, origin in origins.items()}
    ours.load_state_dict({name.removeprefix("encoder.stack."): one for name, one in made.items()})
    return ours


def _heads(theirs: nn.MultiheadAttention) -> MultiHead:
    if theirs.bias_k is not None or theirs.add_zero_attn or theirs.kdim != theirs.vdim:
        raise ConfigError(
            "expected an attention without bias_k and add_zero_attn, whose keys and values have one width; "
            "this one cannot be imported"
        )
    size, has_bias = theirs.embed_dim, theirs.in_proj_bias is not None
    heads = MultiHead(size, theirs.num_heads, memory_size=theirs.kdim, dropout=theirs.dropout, bias=has_bias)
    ours: MultiHead = _like(heads, theirs)
    if theirs.in_proj_weight is not None:
        query, rest = theirs.in_proj_weight[:size], theirs.in_proj_weight[size:]
    else:
        query, rest = theirs.q_proj_weight, torch.cat([theirs.k_proj_weight, theirs.v_proj_weight])
    state = {"query.weight": query, "key_value.weight": rest, "out.weight": theirs.out_proj.weight}
    if has_bias:
        state |= {"query.bias": theirs.in_proj_bias[:size], "key_value.bias": theirs.in_proj_bias[size:]}
        state["out.bias"] = theirs.out_proj.bias
    ours.load_state_dict(state)
    return ours


def _encoder(theirs: nn.TransformerEncoder) -> TransformerEncoder:
    first = theirs.layers[0]
    word = getattr(first.activation, "__name__", type(first.activation).__name__).lower()
    if word not in ("relu", "gelu"):
        raise ConfigError(f"activation: expected relu or gelu, got {word}")
    encoder = TransformerEncoder(
        first.self_attn.embed_dim,
        size=first.self_attn.embed_dim,
        num_layers=len(theirs.layers),
        num_heads=first.self_attn.num_heads,
        inner=first.linear1.out_features,
        norm="before" if first.norm_first else "after",
        norm_epsilon=first.norm1.eps,
        activation="relu" if word == "relu" else "gelu",
        bias=first.linear1.bias is not None,
        positions="none",
        dropout=first.dropout1.p,
        attention_dropout=first.self_attn.dropout,
    )
    ours: TransformerEncoder = _like(encoder, theirs)
    for block, layer in zip(ours.blocks, theirs.layers, strict=True):
        block.attention.load_state_dict(_heads(layer.self_attn).state_dict())
        block.attention_norm.load_state_dict(layer.norm1.state_dict())
        block.network.first.load_state_dict(layer.linear1.state_dict())
        block.network.second.load_state_dict(layer.linear2.state_dict())
        block.network_norm.load_state_dict(layer.norm2.state_dict())
    # torch's encoder has no embeddings, so there is no dropout before the first layer
    ours.dropout.share = 0.0
    ours.last_norm = nn.Identity() if theirs.norm is None else copy.deepcopy(theirs.norm)
    return ours


def _like(ours: Any, theirs: nn.Module) -> Any:
    """Move to the same device, dtype and mode."""
    return ours.to(next(theirs.parameters())).train(theirs.training)
