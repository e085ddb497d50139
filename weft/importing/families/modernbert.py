"""Import ModernBERT: an encoder with rotary positions whose blocks see a window or all, and a masked head."""

from typing import Any

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.importing.checkpoint import Checkpoint, Origins, TensorOrigin, fill, prefixed
from weft.importing.families.rotations import paired
from weft.importing.names import architecture, is_tied, tensor, zeros
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.transformed import Transformed

TABLE = "model.embeddings.tok_embeddings.weight"
GLOBAL, LOCAL = "full_attention", "sliding_attention"


def modernbert(foreign: Checkpoint) -> Labeller:
    """A `ModernBertForMaskedLM`; linear layers and norms that have no bias there have a bias of zero here.

    Source: Warner et al. 2024.
    """
    foreign = prefixed(foreign, "model.", "head.", "decoder.")
    own, count = settings(foreign), foreign.setting("vocab_size")
    foreign.need("tie_word_embeddings", True)
    foreign.need("classifier_activation", "gelu")
    is_tied(foreign, TABLE, "decoder.weight", default=True)
    size, epsilon = own["size"], own["norm_epsilon"]
    embed = Tokens(count, size, scaled=False)
    encoder = TransformerEncoder(size, **own)
    head = Transformed(size, count, tied=embed.table, norm_epsilon=epsilon)
    origins = {
        **tensor("embed.table.weight", TABLE),
        **tensor("head.symbols.weight", TABLE),
        **_maybe(foreign, "encoder.entry_norm", "model.embeddings.norm", size),
        **_maybe(foreign, "encoder.last_norm", "model.final_norm", size),
        **_maybe(foreign, "head.layer", "head.dense", size),
        **_maybe(foreign, "head.norm", "head.norm", size),
    }
    has = "decoder.bias" in foreign.tensors
    origins |= tensor("head.symbols.bias", "decoder.bias") if has else zeros("head.symbols.bias", count)
    for layer in range(own["num_layers"]):
        origins |= _block(foreign, layer, own)
    model = Labeller(embed, encoder, head)
    origins = {name: one for name, one in origins.items() if name in model.state_dict()}
    return fill(model, foreign, origins, spare=("decoder.weight",))


def settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our encoder, as in a recipe."""
    architecture(foreign, "ModernBertForMaskedLM", bare="ModernBertModel")
    foreign.need("hidden_activation", "gelu")
    count = foreign.setting("num_hidden_layers")
    every, window = _every(foreign, count), foreign.setting("local_attention", default=128) // 2
    return {
        "size": foreign.setting("hidden_size"),
        "num_layers": count,
        "num_heads": foreign.setting("num_attention_heads"),
        "inner": foreign.setting("intermediate_size"),
        "norm": "before",
        "norm_epsilon": float(foreign.setting("norm_eps", default=1e-5)),
        "activation": "geglu_exact",
        "bias": any(foreign.config.get(f"{name}_bias", False) for name in ("norm", "attention", "mlp")),
        "positions": "rotary",
        "position_base": _base(foreign, GLOBAL, "global_rope_theta", 160_000.0),
        "window": window,
        "window_base": _base(foreign, LOCAL, "local_rope_theta", 10_000.0),
        "global_every": every,
        "entry_norm": True,
        "first_norm": False,
        "dropout": foreign.setting("mlp_dropout", default=0.0),
        "attention_dropout": foreign.setting("attention_dropout", default=0.0),
    }


def _every(foreign: Checkpoint, count: int) -> int:
    """Every so many blocks, from the first one on, see all positions."""
    kinds = foreign.config.get("layer_types")
    if kinds is None:
        return int(foreign.setting("global_attn_every_n_layers", default=3))
    every = next((n for n in range(1, count) if kinds[n] == GLOBAL), count)
    if list(kinds) != [LOCAL if n % every else GLOBAL for n in range(count)]:
        raise ConfigError(
            f"{foreign.place}: layer_types: expected {GLOBAL} at the first layer and then at equal "
            f"distances, got {', '.join(map(str, kinds))[:80]}"
        )
    return every


def _base(foreign: Checkpoint, kind: str, older: str, usual: float) -> float:
    known = (foreign.config.get("rope_parameters") or {}).get(kind) or {}
    if (scaling := known.get("rope_type", "default")) != "default":
        raise ConfigError(f"{foreign.place}: rope_type: expected default, got {str(scaling)[:40]}")
    return float(known.get("rope_theta", foreign.setting(older, default=usual)))


def _maybe(foreign: Checkpoint, ours: str, theirs: str, size: int) -> Origins:
    """A layer whose bias the checkpoint may lack."""
    has = f"{theirs}.bias" in foreign.tensors
    bias = tensor(f"{ours}.bias", f"{theirs}.bias") if has else zeros(f"{ours}.bias", size)
    return tensor(f"{ours}.weight", f"{theirs}.weight") | bias


def _block(foreign: Checkpoint, layer: int, own: dict[str, Any]) -> Origins:
    ours, theirs, size = f"encoder.blocks.{layer}", f"model.layers.{layer}", own["size"]
    turn = paired(own["num_heads"], size // own["num_heads"])
    packed = f"{theirs}.attn.Wqkv"
    origins = {
        **_maybe(foreign, f"{ours}.attention.out", f"{theirs}.attn.Wo", size),
        **_maybe(foreign, f"{ours}.network.first", f"{theirs}.mlp.Wi", 2 * own["inner"]),
        **_maybe(foreign, f"{ours}.network.second", f"{theirs}.mlp.Wo", size),
        **_maybe(foreign, f"{ours}.network_norm", f"{theirs}.mlp_norm", size),
    }
    if layer:
        origins |= _maybe(foreign, f"{ours}.attention_norm", f"{theirs}.attn_norm", size)

    def keys_values(rows: Tensor) -> Tensor:
        return torch.cat([turn(rows[size : 2 * size]), rows[2 * size :]])

    for part in ("weight", "bias"):
        if f"{packed}.{part}" in foreign.tensors:
            origins |= tensor(
                f"{ours}.attention.query.{part}", f"{packed}.{part}", lambda rows: turn(rows[:size])
            )
            origins[f"{ours}.attention.key_value.{part}"] = TensorOrigin((f"{packed}.{part}",), keys_values)
        else:
            origins |= zeros(f"{ours}.attention.query.{part}", size)
            origins |= zeros(f"{ours}.attention.key_value.{part}", 2 * size)
    return origins
