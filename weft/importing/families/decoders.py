"""Import decoders without an encoder: GPT-2, OPT, GPT-NeoX and Pythia, Llama and its relatives.

They share an embedding, the decoder, an output layer without a bias. Mistral, Qwen2, Qwen3 and Gemma differ
from Llama in biases, in norms of queries and keys, and in the network's gate. Read next: ../names.py.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.importing.checkpoint import Checkpoint, Origins, TensorOrigin, fill, prefixed
from weft.importing.names import (
    FAIRSEQ,
    activation,
    architecture,
    blocks,
    is_tied,
    joined,
    plain,
    tables,
    tensor,
    turned,
    zeros,
)
from weft.models import Generator
from weft.nn.attention import Heads
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.distances import Scaling
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.categorical import Categorical


def decoder_model(
    foreign: Checkpoint,
    own: dict[str, Any],
    table: str,
    head: str,
    *,
    width: int | None = None,
    dropout: float = 0.0,
    scaled: bool = False,
    tied: bool = True,
) -> tuple[Generator, Origins]:
    """A model with a decoder of these settings, and the sources of its tables; its bias is zero.

    `width` is that of the embedding; `tied` is what config.json means if it does not say.
    """
    tokens, in_size = foreign.setting("vocab_size"), own["size"] if width is None else width
    embed = Tokens(tokens, in_size, dropout=dropout, scaled=scaled)
    shares = is_tied(foreign, table, head, default=tied)
    heads, scaling = Heads(**own.get("heads", {})), Scaling(**own.get("position_scaling", {}))
    decoder = TransformerDecoder(in_size, None, **own | {"heads": heads, "position_scaling": scaling})
    output = Categorical(own["size"], tokens, tied=embed.table if shares else None)
    origins = tables(table, table, table if shares else head) | zeros("head.bias", tokens)
    return Generator(embed, decoder, output), origins


SCALINGS = ("default", "linear", "llama3", "yarn")  # values of rope_type that can be imported


class Rotation(NamedTuple):
    """Settings of rotary positions."""

    base: float
    share: float  # of the features of a head
    scaling: dict[str, Any]  # of the decoder's position_scaling; empty for none

    @property
    def settings(self) -> dict[str, Any]:
        """Of our decoder, as in a recipe."""
        more = {"position_scaling": self.scaling} if self.scaling else {}
        return {"positions": "rotary", "position_base": self.base, **more}


def rotation(
    foreign: Checkpoint,
    *,
    theta: str = "rope_theta",
    share: str = "partial_rotary_factor",
    usual: float = 1.0,
) -> Rotation:
    """The settings of rotary positions."""
    table: dict[str, Any] = {}
    kind: Any = "default"
    for one in (foreign.config.get(name) or {} for name in ("rope_parameters", "rope_scaling")):
        kind = one.get("rope_type", one.get("type", kind)) if isinstance(one, dict) else one
        if not isinstance(one, dict) or kind not in SCALINGS:
            known = " or ".join(SCALINGS)
            raise ConfigError(f"{foreign.place}: rope_type: expected {known}, got {str(kind)[:40]}")
        table |= one

    def number(name: str, default: Any, older: str = "") -> float:
        value = table.get(name, foreign.config.get(older or name))
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
            raise ConfigError(f"{foreign.place}: {name}: expected a positive number, got {str(value)[:40]}")
        return float(value)

    scaling: dict[str, Any] = {}
    if kind != "default":
        most = foreign.config.get("max_position_embeddings")
        scaling = {"kind": kind} | _scaling(table, kind, most, number)
    base = number("rope_theta", 10000.0, theta)
    if kind == "yarn" and base <= 1:
        raise ConfigError(f"{foreign.place}: rope_theta: expected a number above 1 for yarn, got {base:g}")
    return Rotation(base, number("partial_rotary_factor", usual, share), scaling)


def _scaling(
    table: dict[str, Any], kind: str, most: Any, number: Callable[..., float]
) -> dict[str, float | bool]:
    """Our settings of scaled positions, as the library reads its own."""
    if kind == "linear":
        return {"factor": number("factor", None)}
    length = number("original_max_position_embeddings", most)
    found: dict[str, float | bool] = {"length": int(length)}
    if kind == "llama3":
        low, high = (number(f"{name}_freq_factor", None) for name in ("low", "high"))
        return found | {"factor": number("factor", None), "low": low, "high": high}
    factor = number("factor", float(most or 0) / length)
    grown, names = 0.1 * math.log(max(factor, 1.0)), ("mscale", "mscale_all_dim")
    usual = 1.0 + grown
    if all(map(table.get, names)):
        usual = (1.0 + grown * number(names[0], 1.0)) / (1.0 + grown * number(names[1], 1.0))
    attention = number("attention_factor", usual)
    turns = {"slow": number("beta_slow", 1.0), "fast": number("beta_fast", 32.0)}
    return (
        found | turns | {"factor": factor, "attention": attention, "whole": bool(table.get("truncate", True))}
    )


def paired(num_heads: int, rotated: int) -> Callable[[Tensor], Tensor]:
    """Reorder the features of each head, [H K, ..], for rotary positions.

    Llama and GPT-NeoX rotate features i and i + R/2 together, Weft 2 i and 2 i + 1, of the first R features.
    """

    def reordered(rows: Tensor) -> Tensor:
        each = rows.unflatten(0, (num_heads, -1))
        first = each[:, :rotated].unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)
        return torch.cat([first, each[:, rotated:]], 1).flatten(0, 1)

    return reordered


GPT2_TABLE, GPT2_HEAD = "transformer.wte.weight", "lm_head.weight"
GPT2_SPARE = (".attn.bias", ".attn.masked_bias", GPT2_HEAD)


def gpt2(foreign: Checkpoint) -> Generator:
    """A `GPT2LMHeadModel` (Radford et al. 2019); its logits have no bias, so ours is zero."""
    foreign.need("scale_attn_by_inverse_layer_idx", False)
    foreign.need("scale_attn_weights", True)
    foreign.need("tie_word_embeddings", True)
    foreign.need("add_cross_attention", False)
    own, dropout = gpt2_settings(foreign), foreign.setting("embd_pdrop", default=0.1)
    foreign = prefixed(foreign, "transformer.", "lm_head.")
    model, origins = decoder_model(foreign, own, GPT2_TABLE, GPT2_HEAD, dropout=dropout)
    origins |= tensor("decoder.positions.table.weight", "transformer.wpe.weight")
    origins |= plain("decoder.last_norm", "transformer.ln_f")
    for layer in range(own["num_layers"]):
        origins |= _gpt2_block(f"decoder.blocks.{layer}", f"transformer.h.{layer}", own["size"])
    return fill(model, foreign, origins, spare=GPT2_SPARE)


def gpt2_settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our decoder, as in a recipe."""
    size = foreign.setting("n_embd")
    return {
        "size": size,
        "num_layers": foreign.setting("n_layer"),
        "num_heads": foreign.setting("n_head"),
        "inner": foreign.setting("n_inner", default=4 * size),
        "norm_epsilon": foreign.setting("layer_norm_epsilon", default=1e-5),
        "activation": activation(foreign, "activation_function"),
        "positions": "learned",
        "max_length": foreign.setting("n_positions"),
        "dropout": foreign.setting("resid_pdrop", default=0.1),
        "attention_dropout": foreign.setting("attn_pdrop", default=0.1),
    }


def _gpt2_block(ours: str, theirs: str, size: int) -> Origins:
    """GPT-2 computes x W + b, so weights are transposed; q, k and v are concatenated."""
    packed = f"{theirs}.attn.c_attn"
    query, rest = f"{ours}.attention.query", f"{ours}.attention.key_value"
    return {
        **tensor(f"{query}.weight", f"{packed}.weight", lambda w: w[:, :size].T),
        **tensor(f"{query}.bias", f"{packed}.bias", lambda b: b[:size]),
        **tensor(f"{rest}.weight", f"{packed}.weight", lambda w: w[:, size:].T),
        **tensor(f"{rest}.bias", f"{packed}.bias", lambda b: b[size:]),
        **_product(f"{ours}.attention.out", f"{theirs}.attn.c_proj"),
        **plain(f"{ours}.attention_norm", f"{theirs}.ln_1"),
        **_product(f"{ours}.network.first", f"{theirs}.mlp.c_fc"),
        **_product(f"{ours}.network.second", f"{theirs}.mlp.c_proj"),
        **plain(f"{ours}.network_norm", f"{theirs}.ln_2"),
    }


def _product(ours: str, theirs: str) -> Origins:
    return plain(ours, theirs) | tensor(f"{ours}.weight", f"{theirs}.weight", turned)


OPT_UNUSED = 2  # unused rows at the beginning of OPT's learned positions
OPT_PREFIX, OPT_HEAD = "model.decoder", "lm_head.weight"


def opt(foreign: Checkpoint) -> Generator:
    """An `OPTForCausalLM` (Zhang et al. 2022); its logits have no bias, so ours is zero."""
    foreign.need("tie_word_embeddings", True)
    own, width = opt_settings(foreign), foreign.setting("word_embed_proj_dim", "hidden_size")
    size, foreign = own["size"], prefixed(foreign, "model.", "lm_head.")
    model, origins = decoder_model(foreign, own, f"{OPT_PREFIX}.embed_tokens.weight", OPT_HEAD, width=width)
    table = "decoder.positions.table.weight"
    origins |= tensor(table, f"{OPT_PREFIX}.embed_positions.weight", lambda rows: rows[OPT_UNUSED:])
    if width != size:
        origins |= tensor("decoder.project.weight", f"{OPT_PREFIX}.project_in.weight")
        origins |= zeros("decoder.project.bias", size)
        origins |= tensor("head.project.weight", f"{OPT_PREFIX}.project_out.weight")
    if own["norm"] == "before":
        origins |= plain("decoder.last_norm", f"{OPT_PREFIX}.final_layer_norm")
    origins |= blocks("decoder.blocks", f"{OPT_PREFIX}.layers", own["num_layers"], FAIRSEQ)
    return fill(model, foreign, origins, spare=(OPT_HEAD,))


def opt_settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our decoder, as in a recipe."""
    architecture(foreign, "OPTForCausalLM", bare="OPTModel")
    foreign.need("enable_bias", True)
    foreign.need("layer_norm_elementwise_affine", True)
    foreign.need("_remove_final_layer_norm", False)
    return {
        "size": foreign.setting("hidden_size"),
        "num_layers": foreign.setting("num_hidden_layers"),
        "num_heads": foreign.setting("num_attention_heads"),
        "inner": foreign.setting("ffn_dim"),
        "norm": "before" if foreign.config.get("do_layer_norm_before", True) else "after",
        "activation": activation(foreign, "activation_function"),
        "positions": "learned",
        "max_length": foreign.setting("max_position_embeddings"),
        "dropout": foreign.setting("dropout", default=0.1),
        "attention_dropout": foreign.setting("attention_dropout", default=0.0),
    }


NEOX_TABLE, NEOX_HEAD = "gpt_neox.embed_in.weight", "embed_out.weight"
NEOX_SPARE = (NEOX_HEAD, ".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq")


def gpt_neox(foreign: Checkpoint) -> Generator:
    """A `GPTNeoXForCausalLM` (Black et al. 2022; Pythia, Biderman et al. 2023); its logits have no bias."""
    own = gpt_neox_settings(foreign)
    foreign = prefixed(foreign, "gpt_neox.", "embed_out.")
    model, origins = decoder_model(foreign, own, NEOX_TABLE, NEOX_HEAD, dropout=own["dropout"], tied=False)
    origins |= plain("decoder.last_norm", "gpt_neox.final_layer_norm")
    for layer in range(own["num_layers"]):
        ours, theirs = f"decoder.blocks.{layer}", f"gpt_neox.layers.{layer}"
        origins |= _gpt_neox_attention(f"{ours}.attention", f"{theirs}.attention", own)
        origins |= {
            **plain(f"{ours}.attention.out", f"{theirs}.attention.dense"),
            **plain(f"{ours}.attention_norm", f"{theirs}.input_layernorm"),
            **plain(f"{ours}.network.first", f"{theirs}.mlp.dense_h_to_4h"),
            **plain(f"{ours}.network.second", f"{theirs}.mlp.dense_4h_to_h"),
            **plain(f"{ours}.network_norm", f"{theirs}.post_attention_layernorm"),
        }
    return fill(model, foreign, origins, spare=NEOX_SPARE)


def gpt_neox_settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our decoder, as in a recipe."""
    architecture(foreign, "GPTNeoXForCausalLM")
    foreign.need("attention_bias", True)
    size, num_heads = foreign.setting("hidden_size"), foreign.setting("num_attention_heads")
    turning = rotation(foreign, theta="rotary_emb_base", share="rotary_pct", usual=0.25)
    return {
        "size": size,
        "num_layers": foreign.setting("num_hidden_layers"),
        "num_heads": num_heads,
        "inner": foreign.setting("intermediate_size"),
        "norm": "parallel" if foreign.config.get("use_parallel_residual", True) else "before",
        "norm_epsilon": foreign.setting("layer_norm_eps", default=1e-5),
        "activation": activation(foreign, "hidden_act"),
        **turning.settings,
        "dropout": foreign.setting("hidden_dropout", default=0.0),
        "attention_dropout": foreign.setting("attention_dropout", default=0.0),
        "heads": {"rotary": int(size // num_heads * turning.share)},
    }


def _gpt_neox_attention(ours: str, theirs: str, own: dict[str, Any]) -> Origins:
    """Their rows are q, k, v of the first head, then of the second."""
    num_heads, reorder = own["num_heads"], paired(own["num_heads"], own["heads"]["rotary"])

    def rows(*which: int) -> Callable[[Tensor], Tensor]:
        def picked(packed: Tensor) -> Tensor:
            each = packed.unflatten(0, (num_heads, 3, -1)).unbind(1)
            return torch.cat(
                [each[n].flatten(0, 1) if n == 2 else reorder(each[n].flatten(0, 1)) for n in which]
            )

        return picked

    packed = f"{theirs}.query_key_value"
    return {
        f"{ours}.{name}.{part}": TensorOrigin((f"{packed}.{part}",), rows(*which))
        for name, which in (("query", (0,)), ("key_value", (1, 2)))
        for part in ("weight", "bias")
    }


LLAMA_TABLE, LLAMA_HEAD = "model.embed_tokens.weight", "lm_head.weight"
LLAMAS = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma": "GemmaForCausalLM",
}
"""The architecture of each `model_type`."""


class LlamaBiases(NamedTuple):
    """Which linear layers have llama_biases."""

    inputs: bool  # queries, keys and values
    out: bool  # the output of attention
    network: bool


def llama(foreign: Checkpoint) -> Generator:
    """A `LlamaForCausalLM` or one of its relatives; the logits have no bias, so ours is zero.

    Gemma multiplies embeddings by sqrt(D), and its norms by 1 + w.

    Source: Touvron et al. 2023; Jiang et al. 2023 (Mistral); Yang et al. 2024, 2025 (Qwen2, Qwen3); Gemma
    Team 2024.
    """
    own, is_gemma = llama_settings(foreign), _is_gemma(foreign)
    foreign = prefixed(foreign, "model.", "lm_head.")
    model, origins = decoder_model(foreign, own, LLAMA_TABLE, LLAMA_HEAD, scaled=is_gemma, tied=is_gemma)
    origins |= tensor("decoder.last_norm.weight", "model.norm.weight")
    for layer in range(own["num_layers"]):
        origins |= _llama_block(
            f"decoder.blocks.{layer}", f"model.layers.{layer}", own, llama_biases(foreign)
        )
    if is_gemma:
        for name in [name for name in origins if name.endswith("norm.weight")]:
            origins[name] = TensorOrigin(origins[name].names, lambda weight: 1 + weight)
    return fill(model, foreign, origins, spare=("rotary_emb.inv_freq", LLAMA_HEAD))


def llama_settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our decoder, as in a recipe."""
    family = foreign.setting("model_type")
    architecture(foreign, LLAMAS[family], bare=LLAMAS[family].replace("ForCausalLM", "Model"))
    _check_gate(foreign)
    _check_window(foreign)
    size, num_heads = foreign.setting("hidden_size"), foreign.setting("num_attention_heads")
    with_biases, turning = llama_biases(foreign), rotation(foreign)
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
        "activation": "geglu" if _is_gemma(foreign) else "swiglu",
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


def llama_biases(foreign: Checkpoint) -> LlamaBiases:
    """Which linear layers of the checkpoint have llama_biases."""
    family = foreign.setting("model_type")
    attention = bool(foreign.config.get("attention_bias", False)) and family in ("llama", "qwen3")
    network = bool(foreign.config.get("mlp_bias", False)) and family == "llama"
    return LlamaBiases(attention or family == "qwen2", attention, network)


def _is_gemma(foreign: Checkpoint) -> bool:
    """Whether it is a Gemma, whose embeddings are multiplied by sqrt(D)."""
    return bool(foreign.setting("model_type") == "gemma")


def _check_gate(foreign: Checkpoint) -> None:
    """Refuse another activation of the gate than the family's."""
    if not _is_gemma(foreign):
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


def _llama_block(ours: str, theirs: str, own: dict[str, Any], has: LlamaBiases) -> Origins:
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
