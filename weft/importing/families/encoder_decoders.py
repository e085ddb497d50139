"""Import encoder-decoders: Marian, BART, mBART, Pegasus and M2M100; T5, T5 v1.1, Flan-T5 and mT5.

The first differ in norms, positions and biases; T5 has relative positions and no biases.
Read next: ../names.py.
"""

import math
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Checkpoint, Origins, TensorOrigin, fill, prefixed
from weft.importing.names import (
    ACTIVATIONS,
    FAIRSEQ,
    activation,
    architecture,
    blocks,
    joined,
    plain,
    tables,
    tensor,
    zeros,
)
from weft.models import Generator
from weft.nn.attention import Heads
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.positions import sinusoid
from weft.nn.transformer import Activation, Norm

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
            tensor("head.bias", "final_logits_bias", lambda bias: bias[0])
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


T5_TABLE, T5_HEAD = "shared.weight", "lm_head.weight"
T5_ARCHITECTURES = {"t5": "T5ForConditionalGeneration", "mt5": "MT5ForConditionalGeneration"}
"""The architecture of each `model_type`."""

NETWORKS: dict[str, Activation] = {
    **ACTIVATIONS,
    "gated-gelu": "geglu",
    "gated-gelu_new": "geglu",
    "gated-silu": "swiglu",
}
T5_SPARE = (
    T5_HEAD,
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",  # unused, in old files
)


def t5(foreign: Checkpoint) -> Generator:
    """A `T5ForConditionalGeneration` or `MT5ForConditionalGeneration`; the logits have no bias, ours is zero.

    T5 divides neither energies by sqrt(d_k) nor, since version 1.1, the decoder's output by sqrt(D); queries
    and the last norm are multiplied by what is missing here.

    Source: Raffel et al. 2020; Shazeer 2020 (v1.1); Xue et al. 2021 (mT5).
    """
    size, tokens, settings = foreign.setting("d_model"), foreign.setting("vocab_size"), t5_sides(foreign)
    encoder = TransformerEncoder(size, **_with_heads(settings["encoder"]))
    decoder = TransformerDecoder(size, encoder, **_with_heads(settings["decoder"]))
    embed, tied = Tokens(tokens, size, scaled=False), is_t5_tied(foreign)
    head = Categorical(size, tokens, tied=embed.table if tied else None)
    model = Generator(embed, decoder, head, encoder=encoder)
    output = size**-0.5 if _divides_output(foreign) else 1.0
    origins: Origins = {
        **tables(T5_TABLE, T5_TABLE, T5_TABLE if tied else T5_HEAD),
        **zeros("head.bias", tokens),
    }
    for side, parts in (("encoder", encoder.blocks), ("decoder", decoder.blocks)):
        first = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        origins |= tensor(f"{side}.distance.table.weight", first)
        factor = output if side == "decoder" else 1.0
        last = f"{side}.final_layer_norm.weight"
        origins |= tensor(f"{side}.last_norm.weight", last, lambda gain, factor=factor: gain * factor)
        for layer in range(len(parts)):
            origins |= _t5_block(
                f"{side}.blocks.{layer}", f"{side}.block.{layer}.layer", settings[side], side
            )
    return fill(model, foreign, origins, spare=T5_SPARE)


def t5_sides(foreign: Checkpoint) -> dict[str, dict[str, Any]]:
    """The settings of our encoder and decoder, as in a recipe."""
    known = T5_ARCHITECTURES[foreign.setting("model_type")]
    architecture(foreign, known, bare=known.replace("ForConditionalGeneration", "Model"))
    foreign.need("relative_attention_num_buckets", 32)
    foreign.need("relative_attention_max_distance", 128)
    layers = foreign.setting("num_layers")
    counts = {"encoder": layers, "decoder": foreign.setting("num_decoder_layers", default=layers)}
    return {
        side: {
            "size": foreign.setting("d_model"),
            "num_layers": count,
            "num_heads": foreign.setting("num_heads"),
            "inner": foreign.setting("d_ff"),
            "norm": "before",
            "norm_kind": "rms",
            "norm_epsilon": foreign.setting("layer_norm_epsilon", default=1e-6),
            "activation": activation(foreign, "feed_forward_proj", known=NETWORKS, default="relu"),
            "bias": False,
            "positions": "relative",
            "dropout": foreign.setting("dropout_rate", default=0.1),
            "attention_dropout": foreign.setting("dropout_rate", default=0.1),
            "heads": {"size": foreign.setting("d_kv")},
        }
        for side, count in counts.items()
    }


def is_t5_tied(foreign: Checkpoint) -> bool:
    """Whether the output layer uses the embedding table; config.json says something else."""
    head = foreign.tensors.get(T5_HEAD)
    known = T5_ARCHITECTURES[foreign.setting("model_type")]
    bare = known not in (foreign.config.get("architectures") or [known])
    if head is None and not _divides_output(foreign) and bare:
        raise CheckpointError(
            f"{foreign.path / foreign.weights}: expected {T5_HEAD}, got a model without its output layer; "
            f"save it as {known}"
        )
    return head is None or T5_TABLE not in foreign.tensors or torch.equal(head, foreign.tensors[T5_TABLE])


def _divides_output(foreign: Checkpoint) -> bool:
    """Whether the decoder's output is divided by sqrt(D): T5 without v1.1."""
    said = foreign.config.get("scale_decoder_outputs")
    if said is None:
        said = foreign.config.get("tie_word_embeddings") is not False
    return bool(said) and foreign.setting("model_type") == "t5"


def _with_heads(settings: dict[str, Any]) -> dict[str, Any]:
    return settings | {"heads": Heads(**settings["heads"])}


def _t5_block(ours: str, theirs: str, settings: dict[str, Any], side: str) -> Origins:
    width, network = settings["heads"]["size"], f"{theirs}.{1 if side == 'encoder' else 2}"
    gated = settings["activation"] in ("geglu", "swiglu")
    inputs = [f"{network}.DenseReluDense.{name}" for name in (("wi_0", "wi_1") if gated else ("wi",))]
    origins = {
        **_t5_attention(f"{ours}.attention", f"{theirs}.0.SelfAttention", width),
        **tensor(f"{ours}.attention_norm.weight", f"{theirs}.0.layer_norm.weight"),
        **joined(f"{ours}.network.first", *inputs, bias=False),
        **tensor(f"{ours}.network.second.weight", f"{network}.DenseReluDense.wo.weight"),
        **tensor(f"{ours}.network_norm.weight", f"{network}.layer_norm.weight"),
    }
    if side == "decoder":
        origins |= _t5_attention(f"{ours}.look", f"{theirs}.1.EncDecAttention", width)
        origins |= tensor(f"{ours}.look_norm.weight", f"{theirs}.1.layer_norm.weight")
    return origins


def _t5_attention(ours: str, theirs: str, width: int) -> Origins:
    return {
        **tensor(f"{ours}.query.weight", f"{theirs}.q.weight", lambda w: w * width**0.5),
        **joined(f"{ours}.key_value", f"{theirs}.k", f"{theirs}.v", bias=False),
        **tensor(f"{ours}.out.weight", f"{theirs}.o.weight"),
    }
