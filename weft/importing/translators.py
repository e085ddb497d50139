"""Import Marian and BART: post-norm Transformer encoder-decoders, learned or sinusoidal positions (M2)."""

from typing import Any

import torch
from torch import Tensor

from weft.importing.checkpoint import Foreign, Origin, fill
from weft.importing.names import activation, heads, plain, tensor
from weft.models import Generator
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.positions import sinusoid

SPARE = (
    "lm_head.weight",
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "embed_positions.weight",
)
UNUSED = 2  # unused rows at the beginning of BART's learned positions


def marian(foreign: Foreign) -> Generator:
    """A `MarianMTModel`. Its sinusoids, all sines before all cosines, are loaded as a table.

    Raises:
        CheckpointError, ConfigError: see checkpoint.py.

    Source: Junczys-Dowmunt et al. 2018.
    """
    foreign.need("share_encoder_decoder_embeddings", True)
    foreign.need("normalize_before", False)
    length, size = foreign.setting("max_position_embeddings"), foreign.setting("d_model")
    waves = sinusoid(torch.arange(length), size, dtype=torch.float64)
    table = torch.cat([waves[:, 0::2], waves[:, 1::2]], 1).float()
    positions = {side: Origin((), lambda: table) for side in ("encoder", "decoder")}
    return _model(foreign, positions, entry_norm=False)


def bart(foreign: Foreign) -> Generator:
    """A `BartForConditionalGeneration`.

    Raises:
        CheckpointError, ConfigError: see checkpoint.py.

    Source: Lewis et al. 2020.
    """
    foreign.need("normalize_before", False)
    positions = {
        side: Origin((f"model.{side}.embed_positions.weight",), lambda table: table[UNUSED:])
        for side in ("encoder", "decoder")
    }
    return _model(foreign, positions, entry_norm=True)


def sides(foreign: Foreign, *, entry_norm: bool) -> dict[str, dict[str, Any]]:
    """The settings of our encoder and decoder, as in a recipe."""
    return {
        side: {
            "size": foreign.setting("d_model"),
            "num_layers": foreign.setting(f"{side}_layers"),
            "num_heads": foreign.setting(f"{side}_attention_heads"),
            "inner": foreign.setting(f"{side}_ffn_dim"),
            "norm": "after",
            "activation": activation(foreign, "activation_function"),
            "positions": "learned",
            "max_length": foreign.setting("max_position_embeddings"),
            "entry_norm": entry_norm,
            "dropout": foreign.setting("dropout", default=0.1),
            "attention_dropout": foreign.setting("attention_dropout", default=0.0),
        }
        for side in ("encoder", "decoder")
    }


def _model(foreign: Foreign, positions: dict[str, Origin], *, entry_norm: bool) -> Generator:
    foreign.need("tie_word_embeddings", True)
    size, tokens = foreign.setting("d_model"), foreign.setting("vocab_size")
    settings = sides(foreign, entry_norm=entry_norm)
    embed = Tokens(tokens, size, scaled=bool(foreign.config.get("scale_embedding", False)))
    encoder = TransformerEncoder(size, **settings["encoder"])
    decoder = TransformerDecoder(size, encoder, **settings["decoder"])
    model = Generator(embed, decoder, Categorical(size, tokens, tied=embed.table), encoder=encoder)
    origins: dict[str, Origin] = {
        **tensor("embed.table.weight", "model.shared.weight"),
        **tensor("source_embed.table.weight", "model.shared.weight"),
        **tensor("head.weight", "model.shared.weight"),
        **tensor("head.bias", "final_logits_bias", _first_row),
    }
    for side, blocks in (("encoder", encoder.blocks), ("decoder", decoder.blocks)):
        origins[f"{side}.positions.table.weight"] = positions[side]
        if entry_norm:
            origins |= plain(f"{side}.entry_norm", f"model.{side}.layernorm_embedding")
        for layer in range(len(blocks)):
            ours, theirs = f"{side}.blocks.{layer}", f"model.{side}.layers.{layer}"
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
    fill(model, foreign, origins, spare=SPARE)
    return model.eval()


def _heads(ours: str, theirs: str) -> dict[str, Origin]:
    return heads(ours, *(f"{theirs}.{name}_proj" for name in ("q", "k", "v", "out")))


def _first_row(bias: Tensor) -> Tensor:
    return bias[0]
