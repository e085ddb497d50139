"""Import Llama and its relatives: decoders with RMSNorm, gated networks, rotary positions, shared keys.

Mistral, Qwen2, Qwen3 and Gemma differ in biases, in norms of queries and keys, and in the network's gate.
Read next: ../names.py.
"""

from typing import Any, NamedTuple

import torch

from weft.errors import ConfigError
from weft.importing.checkpoint import Checkpoint, Origins, TensorOrigin, fill, prefixed
from weft.importing.families.decoders import decoder_model
from weft.importing.families.rotations import paired, rotation
from weft.importing.names import architecture, joined, tensor, zeros
from weft.models import Generator

TABLE, HEAD = "model.embed_tokens.weight", "lm_head.weight"
ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma": "GemmaForCausalLM",
}
"""The architecture of each `model_type`."""


class Biases(NamedTuple):
    """Which linear layers have biases."""

    inputs: bool  # queries, keys and values
    out: bool  # the output of attention
    network: bool


def llama(foreign: Checkpoint) -> Generator:
    """A `LlamaForCausalLM` or one of its relatives; the logits have no bias, so ours is zero.

    Gemma multiplies embeddings by sqrt(D), and its norms by 1 + w.

    Source: Touvron et al. 2023; Jiang et al. 2023 (Mistral); Yang et al. 2024, 2025 (Qwen2, Qwen3); Gemma
    Team 2024.
    """
    own, is_gemma = settings(foreign), scaled(foreign)
    foreign = prefixed(foreign, "model.", "lm_head.")
    model, origins = decoder_model(foreign, own, TABLE, HEAD, scaled=is_gemma, tied=is_gemma)
    origins |= tensor("decoder.last_norm.weight", "model.norm.weight")
    for layer in range(own["num_layers"]):
        origins |= _block(f"decoder.blocks.{layer}", f"model.layers.{layer}", own, biases(foreign))
    if is_gemma:
        for name in [name for name in origins if name.endswith("norm.weight")]:
            origins[name] = TensorOrigin(origins[name].names, lambda weight: 1 + weight)
    return fill(model, foreign, origins, spare=("rotary_emb.inv_freq", HEAD))


def settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our decoder, as in a recipe."""
    family = foreign.setting("model_type")
    architecture(foreign, ARCHITECTURES[family], bare=ARCHITECTURES[family].replace("ForCausalLM", "Model"))
    _check_gate(foreign)
    _check_window(foreign)
    size, num_heads = foreign.setting("hidden_size"), foreign.setting("num_attention_heads")
    with_biases, turning = biases(foreign), rotation(foreign)
    width = foreign.setting("head_dim", default=size // num_heads)
    if turning.share != 1:
        raise ConfigError(f"{foreign.place}: partial_rotary_factor: expected 1, got {turning.share}")
    return {
        "size": size,
        "num_layers": foreign.setting("num_hidden_layers"),
        "num_heads": num_heads,
        "inner": foreign.setting("intermediate_size"),
        "norm": "before",
        "norm_kind": "rms",
        "norm_epsilon": foreign.setting("rms_norm_eps", default=1e-6),
        "activation": "geglu" if scaled(foreign) else "swiglu",
        "bias": with_biases.out or with_biases.network,
        **turning.settings,
        "dropout": 0.0,
        "attention_dropout": foreign.setting("attention_dropout", default=0.0),
        "heads": {
            "key_value": foreign.setting("num_key_value_heads", default=num_heads),
            "size": width,
            "norm": family == "qwen3",
            "bias": with_biases.inputs,
        },
    }


def biases(foreign: Checkpoint) -> Biases:
    """Which linear layers of the checkpoint have biases."""
    family = foreign.setting("model_type")
    attention = bool(foreign.config.get("attention_bias", False)) and family in ("llama", "qwen3")
    network = bool(foreign.config.get("mlp_bias", False)) and family == "llama"
    return Biases(attention or family == "qwen2", attention, network)


def scaled(foreign: Checkpoint) -> bool:
    """Whether it is a Gemma, whose embeddings are multiplied by sqrt(D)."""
    return bool(foreign.setting("model_type") == "gemma")


def _check_gate(foreign: Checkpoint) -> None:
    """Refuse another activation of the gate than the family's."""
    if not scaled(foreign):
        foreign.need("hidden_act", "silu", "swish")
        return
    name = "hidden_act" if foreign.config.get("hidden_activation") is None else "hidden_activation"
    foreign.need(name, "gelu_pytorch_tanh", "gelu_new")


def _check_window(foreign: Checkpoint) -> None:
    """Refuse attention to a window of the newest tokens, if it is shorter than the text may be."""
    window = foreign.config.get("sliding_window")
    if foreign.config["model_type"].startswith("qwen"):
        window = window if foreign.config.get("use_sliding_window", False) else None
    if window is not None and window < foreign.setting("max_position_embeddings"):
        raise ConfigError(
            f"{foreign.place}: sliding_window: expected none, or one of at least "
            f"max_position_embeddings, got {window}; attention to a window is not supported"
        )


def _block(ours: str, theirs: str, own: dict[str, Any], has: Biases) -> Origins:
    attention, network, width = f"{theirs}.self_attn", f"{theirs}.mlp", own["heads"]["size"]
    query, key = (paired(count, width) for count in (own["num_heads"], own["heads"]["key_value"]))
    origins = {
        **tensor(f"{ours}.attention_norm.weight", f"{theirs}.input_layernorm.weight"),
        **tensor(f"{ours}.network_norm.weight", f"{theirs}.post_attention_layernorm.weight"),
    }
    for part in ["weight"] + ["bias"] * has.inputs:
        origins |= {
            **tensor(f"{ours}.attention.query.{part}", f"{attention}.q_proj.{part}", query),
            f"{ours}.attention.key_value.{part}": TensorOrigin(
                (f"{attention}.k_proj.{part}", f"{attention}.v_proj.{part}"),
                lambda k, v: torch.cat([key(k), v]),
            ),
        }
    if own["heads"]["norm"]:
        for name, letter in (("query", "q"), ("key", "k")):
            there = f"{attention}.{letter}_norm.weight"
            origins |= tensor(f"{ours}.attention.{name}_norm.weight", there, paired(1, width))
    for name, maps, bias, size in (
        ("attention.out", [f"{attention}.o_proj"], has.out, own["size"]),
        ("network.first", [f"{network}.gate_proj", f"{network}.up_proj"], has.network, 2 * own["inner"]),
        ("network.second", [f"{network}.down_proj"], has.network, own["size"]),
    ):
        origins |= joined(f"{ours}.{name}", *maps, bias=bias)
        if own["bias"] and not bias:  # only ours has one
            origins |= zeros(f"{ours}.{name}.bias", size)
    return origins
