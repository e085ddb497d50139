"""Import T5, T5 v1.1, Flan-T5 and mT5: encoder-decoders with relative positions and no biases."""

from typing import Any

import torch

from weft.errors import CheckpointError
from weft.importing.checkpoint import Checkpoint, Origins, fill
from weft.importing.names import ACTIVATIONS, activation, architecture, joined, tables, tensor, zeros
from weft.models import Generator
from weft.nn.attention import Heads
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.transformer import Activation

TABLE, HEAD = "shared.weight", "lm_head.weight"
ARCHITECTURES = {"t5": "T5ForConditionalGeneration", "mt5": "MT5ForConditionalGeneration"}
"""The architecture of each `model_type`."""

NETWORKS: dict[str, Activation] = {
    **ACTIVATIONS,
    "gated-gelu": "geglu",
    "gated-gelu_new": "geglu",
    "gated-silu": "swiglu",
}
SPARE = (
    HEAD,
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
    size, tokens, settings = foreign.setting("d_model"), foreign.setting("vocab_size"), sides(foreign)
    encoder = TransformerEncoder(size, **_parts(settings["encoder"]))
    decoder = TransformerDecoder(size, encoder, **_parts(settings["decoder"]))
    embed, tied = Tokens(tokens, size, scaled=False), is_tied(foreign)
    head = Categorical(size, tokens, tied=embed.table if tied else None)
    model = Generator(embed, decoder, head, encoder=encoder)
    output = size**-0.5 if _is_scaled(foreign) else 1.0
    origins: Origins = {
        **tables(TABLE, TABLE, TABLE if tied else HEAD),
        **zeros("head.bias", tokens),
    }
    for side, blocks in (("encoder", encoder.blocks), ("decoder", decoder.blocks)):
        first = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        origins |= tensor(f"{side}.distance.table.weight", first)
        factor = output if side == "decoder" else 1.0
        last = f"{side}.final_layer_norm.weight"
        origins |= tensor(f"{side}.last_norm.weight", last, lambda gain, factor=factor: gain * factor)
        for layer in range(len(blocks)):
            origins |= _block(f"{side}.blocks.{layer}", f"{side}.block.{layer}.layer", settings[side], side)
    return fill(model, foreign, origins, spare=SPARE)


def sides(foreign: Checkpoint) -> dict[str, dict[str, Any]]:
    """The settings of our encoder and decoder, as in a recipe."""
    known = ARCHITECTURES[foreign.setting("model_type")]
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


def is_tied(foreign: Checkpoint) -> bool:
    """Whether the output layer uses the embedding table; config.json says something else."""
    head = foreign.tensors.get(HEAD)
    known = ARCHITECTURES[foreign.setting("model_type")]
    bare = known not in (foreign.config.get("architectures") or [known])
    if head is None and not _is_scaled(foreign) and bare:
        raise CheckpointError(
            f"{foreign.path / foreign.weights}: expected {HEAD}, got a model without its output layer; "
            f"save it as {known}"
        )
    return head is None or TABLE not in foreign.tensors or torch.equal(head, foreign.tensors[TABLE])


def _is_scaled(foreign: Checkpoint) -> bool:
    """Whether the decoder's output is divided by sqrt(D): T5 without v1.1."""
    said = foreign.config.get("scale_decoder_outputs")
    if said is None:
        said = foreign.config.get("tie_word_embeddings") is not False
    return bool(said) and foreign.setting("model_type") == "t5"


def _parts(settings: dict[str, Any]) -> dict[str, Any]:
    return settings | {"heads": Heads(**settings["heads"])}


def _block(ours: str, theirs: str, settings: dict[str, Any], side: str) -> Origins:
    width, network = settings["heads"]["size"], f"{theirs}.{1 if side == 'encoder' else 2}"
    gated = settings["activation"] in ("geglu", "swiglu")
    inputs = [f"{network}.DenseReluDense.{name}" for name in (("wi_0", "wi_1") if gated else ("wi",))]
    origins = {
        **_attention(f"{ours}.attention", f"{theirs}.0.SelfAttention", width),
        **tensor(f"{ours}.attention_norm.weight", f"{theirs}.0.layer_norm.weight"),
        **joined(f"{ours}.network.first", *inputs, bias=False),
        **tensor(f"{ours}.network.second.weight", f"{network}.DenseReluDense.wo.weight"),
        **tensor(f"{ours}.network_norm.weight", f"{network}.layer_norm.weight"),
    }
    if side == "decoder":
        origins |= _attention(f"{ours}.look", f"{theirs}.1.EncDecAttention", width)
        origins |= tensor(f"{ours}.look_norm.weight", f"{theirs}.1.layer_norm.weight")
    return origins


def _attention(ours: str, theirs: str, width: int) -> Origins:
    return {
        **tensor(f"{ours}.query.weight", f"{theirs}.q.weight", lambda w: w * width**0.5),
        **joined(f"{ours}.key_value", f"{theirs}.k", f"{theirs}.v", bias=False),
        **tensor(f"{ours}.out.weight", f"{theirs}.o.weight"),
    }
