"""A Transformer as CTranslate2's model.bin, written from its own weights.

Read next: formats/ctranslate2.py.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.export.network import Side, TransformerNetwork, blocks, positions, usual_heads
from weft.nn.norms import RMSNorm
from weft.nn.positions import Learned, sinusoid
from weft.nn.transformer import GATED
from weft.text.vocabulary import EOS, SOS, UNK

ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "silu": "SWISH",
    "swiglu": "SWISH",
    "geglu": "GELUTanh",
}


def check_parts(network: TransformerNetwork) -> None:
    """Check that CTranslate2 has every part."""
    for name, part in network.sides:
        place, block = f"model.{name}", blocks(part)[0]
        kind = positions(part)
        if kind == "other":
            raise ConfigError(
                f"{place}.positions: --to ctranslate2 expects sinusoidal, learned, rotary or none, got "
                f"{_kind(part)}; use --to onnx"
            )
        if block.norm == "parallel" or not usual_heads(part):
            raise ConfigError(
                f"{place}: --to ctranslate2 expects blocks and heads as in Vaswani et al. 2017, got parallel "
                "blocks or a variant of heads; use --to onnx"
            )
        if kind == "rotary" and network.encoder is not None:
            raise ConfigError(
                f"{place}.positions: --to ctranslate2 has rotary positions in language models only; use "
                "sinusoidal or learned ones, or --to onnx"
            )
    _check_alike(network)


def _kind(part: Side) -> str:
    return type(part.positions if hasattr(part.positions, "project") else part.distance).__name__.lower()


def _check_alike(network: TransformerNetwork) -> None:
    """What CTranslate2 stores once for a model."""
    kinds = {(blocks(part)[0].norm, _epsilon(part)) for _, part in network.sides}
    if len(kinds) > 1:
        raise ConfigError(
            "model: --to ctranslate2 expects the same norm and norm_epsilon in encoder and decoder, got "
            f"{' and '.join(map(str, sorted(kinds)))}; use --to onnx"
        )


def _epsilon(part: Side) -> float:
    return float(blocks(part)[0].attention_norm.eps)


def save(
    network: TransformerNetwork,
    folder: Path,
    source: list[str],
    target: list[str],
    *,
    quantization: str | None,
) -> int:
    """Write model.bin, config.json and the vocabularies; returns the size of model.bin in bytes."""
    spec = _pair(network) if network.encoder is not None else _single(network)
    config = spec.config
    if network.encoder is not None:
        spec.register_source_vocabulary(list(source))
        spec.register_target_vocabulary(list(target))
        config.decoder_start_token = target[SOS]
        config.add_source_bos = config.add_source_eos = False
    else:
        spec.register_vocabulary(list(target))
    config.unk_token, config.eos_token = target[UNK], target[EOS]
    config.bos_token = target[SOS] if network.encoder is not None else target[EOS]
    config.layer_norm_epsilon = _epsilon(network.decoder)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    return (folder / "model.bin").stat().st_size


def _settings(part: Side) -> dict[str, Any]:
    """The arguments of an encoder's or decoder's specification."""
    from ctranslate2.specs import common_spec

    block = blocks(part)[0]
    rotary: dict[str, Any] = {}
    if positions(part) == "rotary":
        distance: Any = part.distance
        rotary = {"rotary_dim": 0, "rotary_interleave": True, "rotary_base": float(distance.base)}
    return {
        "num_layers": len(blocks(part)),
        "num_heads": block.attention.num_heads,
        "pre_norm": block.norm == "before",
        "activation": getattr(common_spec.Activation, ACTIVATIONS[block.network.activation]),
        "rms_norm": isinstance(block.attention_norm, RMSNorm),
        "ffn_glu": block.network.activation in GATED,
        "layernorm_embedding": not isinstance(part.entry_norm, nn.Identity),
        **rotary,
    }


def _pair(network: TransformerNetwork) -> Any:
    from ctranslate2.specs import transformer_spec

    assert network.encoder is not None
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(**_settings(network.encoder)),
        transformer_spec.TransformerDecoderSpec(**_settings(network.decoder)),
    )
    _fill(spec.encoder, spec.encoder.embeddings[0], network.encoder, network.model.source_embed, network)
    _fill(spec.decoder, spec.decoder.embeddings, network.decoder, network.model.embed, network)
    _linear(spec.decoder.projection, network.model.head)
    return spec


def _single(network: TransformerNetwork) -> Any:
    from ctranslate2.specs import transformer_spec

    spec = transformer_spec.TransformerDecoderModelSpec.from_config(**_settings(network.decoder))
    _fill(spec.decoder, spec.decoder.embeddings, network.decoder, network.model.embed, network)
    _linear(spec.decoder.projection, network.model.head)
    return spec


def _fill(spec: Any, table: Any, part: Side, embed: Any, network: TransformerNetwork) -> None:
    """An encoder or a decoder."""
    table.weight = _numbers(embed.table.weight)
    spec.scale_embeddings = np.float32(embed.scale)
    if hasattr(spec, "position_encodings"):
        spec.position_encodings.encodings = _positions(part, network)
    if not isinstance(part.last_norm, nn.Identity):
        _norm(spec.layer_norm, part.last_norm)
    if not isinstance(part.entry_norm, nn.Identity):
        _norm(spec.layernorm_embedding, part.entry_norm)
    for block, layer in zip(blocks(part), spec.layer, strict=True):
        _attention(layer.self_attention, block.attention, fused=True)
        _norm(layer.self_attention.layer_norm, block.attention_norm)
        if hasattr(block, "look"):
            _attention(layer.attention, block.look, fused=False)
            _norm(layer.attention.layer_norm, block.look_norm)
        first, network_of = block.network.first, layer.ffn
        if block.network.activation in GATED:
            half = first.out_features // 2
            _linear(network_of.linear_0, first, slice(None, half))
            _linear(network_of.linear_0_noact, first, slice(half, None))
        else:
            _linear(network_of.linear_0, first)
        _linear(network_of.linear_1, block.network.second)
        _norm(network_of.layer_norm, block.network_norm)


def _positions(part: Side, network: TransformerNetwork) -> np.ndarray:
    table: Any = part.positions
    if isinstance(table, Learned):
        return _numbers(table.table.weight)
    if positions(part) == "none":
        return np.zeros((network.length, part.size), np.float32)
    waves = sinusoid(torch.arange(network.length), part.size, table.base, dtype=torch.float64)
    return _numbers(waves)


def _numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().contiguous().numpy()


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma = _numbers(norm.weight)
    if not isinstance(norm, RMSNorm):
        spec.beta = np.zeros_like(spec.gamma) if norm.bias is None else _numbers(norm.bias)


def _linear(spec: Any, layer: Any, rows: slice = slice(None)) -> None:
    spec.weight = _numbers(layer.weight[rows])
    if layer.bias is not None:
        spec.bias = _numbers(layer.bias[rows])


def _attention(spec: Any, attention: Any, *, fused: bool) -> None:
    """Queries, keys and values in one matrix for self-attention, in two otherwise."""
    from ctranslate2.converters.utils import fuse_linear
    from ctranslate2.specs import common_spec

    parts = [common_spec.LinearSpec() for _ in range(2)]
    _linear(parts[0], attention.query)
    _linear(parts[1], attention.key_value)
    if fused:
        fuse_linear(spec.linear[0], parts)
    else:
        spec.linear[0], spec.linear[1] = parts
    _linear(spec.linear[-1], attention.out)
