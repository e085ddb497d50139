"""Recurrent translators of OpenNMT-py: LSTM or GRU with Luong's or additive attention.

Read next: opennmt.py; ../../nn/decoders/recurrent.py, what they become.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from weft.errors import CheckpointError
from weft.importing.checkpoint import TensorOrigin
from weft.importing.kits.mapping import cell_of, layer_of, recurrent, zeros
from weft.importing.kits.reading import choice
from weft.importing.names import plain, tensor

SCORES = {"general": "bilinear", "dot": "dot", "mlp": "additive"}


def encoder(
    tensors: Mapping[str, Tensor], options: dict[str, Any], dropout: float, place: str
) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """The recipe's settings of the encoder, and the source of each of its tensors.

    Args:
        tensors: of the checkpoint.
        options: OpenNMT-py's.
        dropout: between layers.
        place: of the checkpoint, for errors.

    Raises:
        CheckpointError: tensors are missing.
        ConfigError: an option that Weft's parts cannot express.
    """
    kind = _kind(options, place)
    both = choice(options, "encoder_type", place, "rnn", "brnn") == "brnn"
    layers = _count(tensors, "encoder.rnn.weight_hh_l{}", place)
    origins: dict[str, TensorOrigin] = {}
    for layer in range(layers):
        origins |= recurrent(f"encoder.stack.forwards.{layer}", layer_of("encoder.rnn", layer), kind)
        if both:
            backward = layer_of("encoder.rnn", layer, backward=True)
            origins |= recurrent(f"encoder.stack.backwards.{layer}", backward, kind)
    settings = {
        "use": "recurrent",
        "cell": kind,
        "sizes": [tensors["encoder.rnn.weight_hh_l0"].shape[-1]] * layers,
        "bidirectional": both,
        "dropout": dropout,
    }
    return settings, origins


def decoder(
    tensors: Mapping[str, Tensor], options: dict[str, Any], dropout: float, place: str
) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """The decoder's settings and the source of each of its tensors; the arguments are those of `encoder`.

    Raises:
        CheckpointError: tensors are missing.
        ConfigError: an option that Weft's parts cannot express.
    """
    kind = _kind(options, place)
    for name in ("copy_attn", "coverage_attn"):
        choice(options, name, place, False)
    choice(options, "context_gate", place, None)
    score = choice(options, "global_attention", place, "general", "dot", "mlp", "none")
    feeding = bool(choice(options, "input_feed", place, 1, 0))
    layers = _count(
        tensors, "decoder.rnn.layers.{}.weight_hh" if feeding else "decoder.rnn.weight_hh_l{}", place
    )
    origins: dict[str, TensorOrigin] = {}
    for layer in range(layers):
        theirs = cell_of(f"decoder.rnn.layers.{layer}") if feeding else layer_of("decoder.rnn", layer)
        origins |= recurrent(f"decoder.stack.forwards.{layer}", theirs, kind)
    size = tensors["decoder.rnn.layers.0.weight_hh" if feeding else "decoder.rnn.weight_hh_l0"].shape[-1]
    settings = {
        "use": "recurrent",
        "cell": kind,
        "sizes": [size] * layers,
        "enters": "late" if score != "none" else "never",
        "input_feeding": feeding,
        "bridge": "layers",
        "dropout": dropout,
    }
    if choice(options, "bridge", place, False, True):
        settings["bridge"] = "joint"
        origins |= _bridge(tensors, kind)
    if score != "none":
        settings["score"] = SCORES[score]
        settings["weights"] = choice(options, "global_attention_function", place, "softmax", "sparsemax")
        settings |= {"readout_activation": "none"} if score == "mlp" else {}
        origins |= _attention(score, size)
    return settings, origins


def _kind(options: dict[str, Any], place: str) -> str:
    return str(choice(options, "rnn_type", place, "LSTM", "GRU")).lower()


def _count(tensors: Mapping[str, Tensor], pattern: str, place: str) -> int:
    """The number of layers."""
    count = 0
    while (found := tensors.get(pattern.format(count))) is not None and found.dim() == 2:
        count += 1
    if not count:
        raise CheckpointError(
            f"{place}: expected a matrix {pattern.format(0)}, got none; are these its options?"
        )
    return count


def _attention(score: str, size: int) -> dict[str, TensorOrigin]:
    """The score, and the readout W [c; h], in which ours has h first."""
    theirs, ours = "decoder.attn", "decoder.attention.score"
    found = tensor("decoder.readout.0.weight", f"{theirs}.linear_out.weight", _swapped)
    if score == "mlp":
        return found | {
            **tensor("decoder.readout.0.bias", f"{theirs}.linear_out.bias"),
            **plain(f"{ours}.query", f"{theirs}.linear_query"),
            **tensor(f"{ours}.key.weight", f"{theirs}.linear_context.weight"),
            **tensor(f"{ours}.weight.weight", f"{theirs}.v.weight"),
        }
    found |= zeros("decoder.readout.0.bias", size)
    if score == "general":  # theirs multiplies the query, ours the keys
        found |= tensor(f"{ours}.weight.weight", f"{theirs}.linear_in.weight", lambda weight: weight.mT)
    return found


def _bridge(tensors: Mapping[str, Tensor], kind: str) -> dict[str, TensorOrigin]:
    """One map of all layers for h, another for c.

    With a bidirectional encoder, theirs maps each half of the states with the same weights.
    """
    found: dict[str, TensorOrigin] = {}
    both = "encoder.rnn.weight_hh_l0_reverse" in tensors

    def weight(matrix: Tensor) -> Tensor:
        return torch.block_diag(matrix, matrix) if both else matrix

    def bias(vector: Tensor) -> Tensor:
        return torch.cat([vector, vector]) if both else vector

    for index in range(2 if kind == "lstm" else 1):
        ours, theirs = f"decoder.bridge.maps.{index}", f"encoder.bridge.{index}"
        found |= tensor(f"{ours}.weight", f"{theirs}.weight", weight)
        found |= tensor(f"{ours}.bias", f"{theirs}.bias", bias)
    return found


def _swapped(weight: Tensor) -> Tensor:
    return torch.cat(weight.chunk(2, 1)[::-1], 1)
