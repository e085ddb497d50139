"""Import OPT: a decoder without an encoder, learned positions, norms before or after."""

from typing import Any

from weft.importing.checkpoint import Checkpoint, Origins, fill, prefixed
from weft.importing.names import (
    FAIRSEQ,
    activation,
    architecture,
    blocks,
    is_tied,
    plain,
    tables,
    tensor,
    zeros,
)
from weft.models import Generator
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.categorical import Categorical

UNUSED = 2  # unused rows at the beginning of OPT's learned positions
HEAD = "lm_head.weight"


def opt(foreign: Checkpoint) -> Generator:
    """An `OPTForCausalLM`; its logits have no bias, so ours is zero.

    Source: Zhang et al. 2022.
    """
    own, tokens = settings(foreign), foreign.setting("vocab_size")
    size, width = own["size"], foreign.setting("word_embed_proj_dim", "hidden_size")
    prefix, foreign = "model.decoder", prefixed(foreign, "model.", "lm_head.")
    table = f"{prefix}.embed_tokens.weight"
    embed = Tokens(tokens, width, scaled=False)
    decoder = TransformerDecoder(width, None, **own)
    foreign.need("tie_word_embeddings", True)
    is_tied(foreign, table, HEAD, default=True)
    model = Generator(embed, decoder, Categorical(size, tokens, tied=embed.table))
    origins: Origins = {
        **tables(table, table, table),
        **zeros("head.bias", tokens),
        **tensor(
            "decoder.positions.table.weight", f"{prefix}.embed_positions.weight", lambda rows: rows[UNUSED:]
        ),
    }
    if width != size:
        origins |= tensor("decoder.project.weight", f"{prefix}.project_in.weight")
        origins |= zeros("decoder.project.bias", size)
        origins |= tensor("head.project.weight", f"{prefix}.project_out.weight")
    if own["norm"] == "before":
        origins |= plain("decoder.last_norm", f"{prefix}.final_layer_norm")
    origins |= blocks("decoder.blocks", f"{prefix}.layers", len(decoder.blocks), FAIRSEQ)
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
