"""Import GPT-2: a decoder without an encoder, learned positions, pre-norm, tied embeddings."""

from typing import Any

from weft.importing.checkpoint import Checkpoint, Origins, fill, prefixed
from weft.importing.families.decoders import decoder_model
from weft.importing.names import activation, plain, tensor, turned
from weft.models import Generator

TABLE, HEAD = "transformer.wte.weight", "lm_head.weight"
SPARE = (".attn.bias", ".attn.masked_bias", HEAD)


def gpt2(foreign: Checkpoint) -> Generator:
    """A `GPT2LMHeadModel` as a Generator; GPT-2's logits have no bias, so ours is zero.

    Source: Radford et al. 2019.
    """
    foreign.need("scale_attn_by_inverse_layer_idx", False)
    foreign.need("scale_attn_weights", True)
    foreign.need("tie_word_embeddings", True)
    foreign.need("add_cross_attention", False)
    own, dropout = settings(foreign), foreign.setting("embd_pdrop", default=0.1)
    foreign = prefixed(foreign, "transformer.", "lm_head.")
    model, origins = decoder_model(foreign, own, TABLE, HEAD, dropout=dropout)
    origins |= tensor("decoder.positions.table.weight", "transformer.wpe.weight")
    origins |= plain("decoder.last_norm", "transformer.ln_f")
    for layer in range(own["num_layers"]):
        origins |= _block(f"decoder.blocks.{layer}", f"transformer.h.{layer}", own["size"])
    return fill(model, foreign, origins, spare=SPARE)


def settings(foreign: Checkpoint) -> dict[str, Any]:
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


def _block(ours: str, theirs: str, size: int) -> Origins:
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
