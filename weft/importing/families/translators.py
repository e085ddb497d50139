"""Import Marian, BART, mBART, Pegasus and M2M100: Transformer encoder-decoders.

They differ in norms, positions and biases. Read next: t5.py.
"""

import math
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.importing.checkpoint import Checkpoint, Origins, TensorOrigin, fill, prefixed
from weft.importing.names import FAIRSEQ, activation, blocks, plain, tables, tensor, zeros
from weft.models import Generator
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.positions import sinusoid
from weft.nn.transformer import Norm

SPARE = (
    "lm_head.weight",
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "embed_positions.weight",
    "embed_positions.weights",
)
UNUSED = 2  # unused rows at the beginning of BART's learned positions


class FamilyTraits(NamedTuple):
    """What distinguishes a family."""

    norm: Norm = "after"
    entry_norm: bool = False
    positions: Literal["table", "waves", "shifted waves"] = "table"  # in the checkpoint, or computed
    bias: bool = True  # of the logits


FORMS: dict[str, FamilyTraits] = {
    "marian": FamilyTraits(positions="waves"),
    "bart": FamilyTraits(entry_norm=True),
    "mbart": FamilyTraits(norm="before", entry_norm=True),
    "pegasus": FamilyTraits(norm="before", positions="waves"),
    "m2m_100": FamilyTraits(norm="before", positions="shifted waves", bias=False),
}
"""The form of each `model_type`."""


def translator(foreign: Checkpoint) -> Generator:
    """A `MarianMTModel`, or a BART, mBART, Pegasus or M2M100 `ForConditionalGeneration`.

    Sinusoids of these families, all sines before all cosines, are loaded as a table.

    Source: Junczys-Dowmunt et al. 2018 (Marian); Lewis et al. 2020 (BART); Liu et al. 2020 (mBART);
    Zhang et al. 2020 (Pegasus); Fan et al. 2021 (M2M100); NLLB Team 2022.
    """
    form = FORMS[foreign.setting("model_type")]
    _check(foreign)
    foreign = prefixed(foreign, "model.", "lm_head.", "final_logits_bias")
    size, tokens = foreign.setting("d_model"), foreign.setting("vocab_size")
    settings = sides(foreign)
    embed = Tokens(tokens, size, scaled=bool(foreign.config.get("scale_embedding", False)))
    encoder = TransformerEncoder(size, **settings["encoder"])
    decoder = TransformerDecoder(size, encoder, **settings["decoder"])
    model = Generator(embed, decoder, Categorical(size, tokens, tied=embed.table), encoder=encoder)
    shared = "model.shared.weight"
    origins: Origins = {
        **tables(shared, shared, shared),
        **(
            tensor("head.bias", "final_logits_bias", _first_row)
            if form.bias and "final_logits_bias" in foreign.tensors
            else zeros("head.bias", tokens)
        ),
    }
    for side, count in (("encoder", len(encoder.blocks)), ("decoder", len(decoder.blocks))):
        origins[f"{side}.positions.table.weight"] = _positions(foreign, form, side)
        if form.entry_norm:
            origins |= plain(f"{side}.entry_norm", f"model.{side}.layernorm_embedding")
        if form.norm == "before":
            origins |= plain(f"{side}.last_norm", f"model.{side}.layer_norm")
        theirs = f"model.{side}.layers"
        origins |= blocks(f"{side}.blocks", theirs, count, FAIRSEQ, looks=side == "decoder")
    return fill(model, foreign, origins, spare=SPARE)


def sides(foreign: Checkpoint) -> dict[str, dict[str, Any]]:
    """The settings of our encoder and decoder, as in a recipe."""
    form = FORMS[foreign.setting("model_type")]
    return {
        side: {
            "size": foreign.setting("d_model"),
            "num_layers": foreign.setting(f"{side}_layers"),
            "num_heads": foreign.setting(f"{side}_attention_heads"),
            "inner": foreign.setting(f"{side}_ffn_dim"),
            "norm": form.norm,
            "activation": activation(foreign, "activation_function"),
            "positions": "learned",
            "max_length": foreign.setting("max_position_embeddings"),
            "entry_norm": form.entry_norm,
            "dropout": foreign.setting("dropout", default=0.1),
            "attention_dropout": foreign.setting("attention_dropout", default=0.0),
        }
        for side in ("encoder", "decoder")
    }


def _check(foreign: Checkpoint) -> None:
    """Refuse settings that older exports have in config.json and the library itself ignores."""
    family = foreign.setting("model_type")
    foreign.need("tie_word_embeddings", True)
    if family == "marian":
        foreign.need("share_encoder_decoder_embeddings", True)
    foreign.need("normalize_before", FORMS[family].norm == "before")


def _positions(foreign: Checkpoint, form: FamilyTraits, side: str) -> TensorOrigin:
    """A table of position vectors."""
    length, size = foreign.setting("max_position_embeddings"), foreign.setting("d_model")
    if form.positions == "table":
        return TensorOrigin((f"model.{side}.embed_positions.weight",), lambda table: table[UNUSED:])
    if form.positions == "waves":
        waves = sinusoid(torch.arange(length), size, dtype=torch.float64)
        table = torch.cat([waves[:, 0::2], waves[:, 1::2]], 1).float()
        return TensorOrigin((), lambda: table)
    first = foreign.setting("pad_token_id") + 1  # of the positions that are used
    table = shifted_waves(length, size, first, f"{foreign.place}: d_model")
    return TensorOrigin((), lambda: table)


def shifted_waves(
    length: int, size: int, first: int, place: str, *, log_base: float = math.log(10000)
) -> Tensor:
    """fairseq's sinusoids [length, size] of the positions `first` on, all sines before all cosines."""
    if size % 2 or size < 4:
        raise ConfigError(f"{place}: expected an even number of at least 4, got {size}")
    half = torch.arange(size // 2).float()
    speed = torch.exp(half * -(log_base / (size // 2 - 1)))  # float32, as the library computes it
    angle = torch.arange(first, first + length).float()[:, None] * speed
    return torch.cat([angle.sin(), angle.cos()], 1)


def _first_row(bias: Tensor) -> Tensor:
    return bias[0]
