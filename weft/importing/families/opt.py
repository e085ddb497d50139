"""Import OPT: a decoder without an encoder, learned positions, norms before or after."""

from typing import Any

from weft.importing.checkpoint import Checkpoint, fill, prefixed
from weft.importing.families.decoders import decoder_model
from weft.importing.names import FAIRSEQ, activation, architecture, blocks, plain, tensor, zeros
from weft.models import Generator

UNUSED = 2  # unused rows at the beginning of OPT's learned positions
PREFIX, HEAD = "model.decoder", "lm_head.weight"


def opt(foreign: Checkpoint) -> Generator:
    """An `OPTForCausalLM`; its logits have no bias, so ours is zero.

    Source: Zhang et al. 2022.
    """
    foreign.need("tie_word_embeddings", True)
    own, width = settings(foreign), foreign.setting("word_embed_proj_dim", "hidden_size")
    size, foreign = own["size"], prefixed(foreign, "model.", "lm_head.")
    model, origins = decoder_model(foreign, own, f"{PREFIX}.embed_tokens.weight", HEAD, width=width)
    table = "decoder.positions.table.weight"
    origins |= tensor(table, f"{PREFIX}.embed_positions.weight", lambda rows: rows[UNUSED:])
    if width != size:
        origins |= tensor("decoder.project.weight", f"{PREFIX}.project_in.weight")
        origins |= zeros("decoder.project.bias", size)
        origins |= tensor("head.project.weight", f"{PREFIX}.project_out.weight")
    if own["norm"] == "before":
        origins |= plain("decoder.last_norm", f"{PREFIX}.final_layer_norm")
    origins |= blocks("decoder.blocks", f"{PREFIX}.layers", own["num_layers"], FAIRSEQ)
    return fill(model, foreign, origins, spare=(HEAD,))


def settings(foreign: Checkpoint) -> dict[str, Any]:
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
