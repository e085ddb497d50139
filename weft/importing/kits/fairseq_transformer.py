"""fairseq's Transformer for translation. Read next: fairseq_parts.py; ../families/translators.py."""

from typing import Any

import torch

from weft.errors import ConfigError
from weft.importing.checkpoint import TensorOrigin
from weft.importing.families.translators import shifted_waves
from weft.importing.kits.fairseq_parts import FairseqCheckpoint, OurParts, tables
from weft.importing.kits.mapping import zeros
from weft.importing.kits.reading import choice
from weft.importing.names import heads, plain, tensor

ARCHITECTURES = (
    "transformer",
    "transformer_tiny",
    "transformer_iwslt_de_en",
    "transformer_wmt_en_de",
    "transformer_wmt_en_de_big",
    "transformer_wmt_en_de_big_t2t",
    "transformer_vaswani_wmt_en_de_big",
    "transformer_vaswani_wmt_en_fr_big",
)
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_accurate": "gelu_tanh", "gelu_fast": "gelu_tanh"}
UNUSED = 2  # positions are counted from 2, behind that of padding
MOST = 4096  # computed positions


def transformer(found: FairseqCheckpoint) -> OurParts:
    """A Transformer; missing settings have the values of `base_architecture`."""
    size = found.same("embed_dim", 512)
    for name in ("decoder_input_dim", "decoder_output_dim"):
        choice(found.settings, name, found.place, size)
    tied = found.flag("share_decoder_input_output_embed") or found.flag("share_all_embeddings")
    logits = "decoder.embed_tokens.weight" if tied else "decoder.output_projection.weight"
    state = {name: one for name, one in found.state.items() if not tied or ".output_projection." not in name}
    origins = tables(logits) | zeros("head.bias", len(state.get(logits, ())))
    model, most = {}, []
    for side, place in (("encoder", "source"), ("decoder", "target")):
        model[side], more = _side(found, side, place, size)
        most.append(model[side]["max_length"])
        origins |= more
    embedding = {"size": size, "dropout": 0.0, "tied": tied, "scaled": not found.flag("no_scale_embedding")}
    return OurParts(model, embedding, min(most), origins, state)


def _side(
    found: FairseqCheckpoint, side: str, place: str, size: int
) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """The encoder or the decoder of a Transformer."""
    before, layers = found.flag(f"{side}_normalize_before"), found.layers(side, 6)
    kind, length, origins = _positions(found, side, place, size)
    if found.flag("layernorm_embedding"):
        origins |= plain(f"{side}.entry_norm", f"{side}.layernorm_embedding")
    if before:
        version = found.state.get(f"{side}.version", torch.ones(1))
        if version.numel() != 1 or version.item() < 3:
            raise ConfigError(
                f"{found.place}: {side}_normalize_before: expected a norm behind the last layer, got a "
                f"checkpoint of an early version ({side}.version) without it, which Weft does not support"
            )
        origins |= plain(f"{side}.last_norm", f"{side}.layer_norm")
    for layer in range(layers):
        ours, theirs = f"{side}.blocks.{layer}", f"{side}.layers.{layer}"
        origins |= {
            **_heads(f"{ours}.attention", f"{theirs}.self_attn"),
            **plain(f"{ours}.attention_norm", f"{theirs}.self_attn_layer_norm"),
            **plain(f"{ours}.network.first", f"{theirs}.fc1"),
            **plain(f"{ours}.network.second", f"{theirs}.fc2"),
            **plain(f"{ours}.network_norm", f"{theirs}.final_layer_norm"),
        }
        if side == "decoder":
            origins |= _heads(f"{ours}.look", f"{theirs}.encoder_attn")
            origins |= plain(f"{ours}.look_norm", f"{theirs}.encoder_attn_layer_norm")
    word = choice(found.settings, "activation_fn", found.place, *ACTIVATIONS)
    settings = {
        "use": "transformer",
        "size": size,
        "num_layers": layers,
        "num_heads": found.number(f"{side}_attention_heads", 8),
        "inner": found.number(f"{side}_ffn_embed_dim", 2048),
        "norm": "before" if before else "after",
        "activation": ACTIVATIONS[word],
        "positions": kind,
        "max_length": length,
        "entry_norm": found.flag("layernorm_embedding"),
        "dropout": found.number("dropout", 0.1),
        "attention_dropout": found.number("attention_dropout", 0.0),
    }
    return settings, origins


def _positions(
    found: FairseqCheckpoint, side: str, place: str, size: int
) -> tuple[str, int, dict[str, TensorOrigin]]:
    """The kind of positions, how many there are, and their table."""
    most = min(int(found.number(f"max_{place}_positions", 1024)), MOST)
    if found.flag("no_token_positional_embeddings"):
        return "none", most, {}
    ours, theirs = f"{side}.positions.table.weight", f"{side}.embed_positions.weight"
    if found.flag(f"{side}_learned_pos"):
        rows = max(len(found.state.get(theirs, ())) - UNUSED, 1)
        return "learned", rows, tensor(ours, theirs, lambda table: table[UNUSED:])
    waves = shifted_waves(most, size, UNUSED, f"{found.place}: {side}_embed_dim")
    return "learned", most, {ours: TensorOrigin((), lambda: waves)}


def _heads(ours: str, theirs: str) -> dict[str, TensorOrigin]:
    return heads(ours, *(f"{theirs}.{name}_proj" for name in ("q", "k", "v", "out")))
