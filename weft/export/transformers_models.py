"""Weft's Transformers in the forms of the `transformers` library: which family, its config.json, its tensors.

| family | norm | positions | norm of embeddings |
|---|---|---|---|
| Marian | after | sinusoids | no |
| Pegasus | before | sinusoids | no |
| BART | after | learned | yes |
| mBART | before | learned | yes |
| Blenderbot | before | learned | no |

Their sinusoids have all sines first and are computed on load, Weft's alternate. Instead of the table, the
features of the residual stream are moved, which changes nothing else: exact.
Read next: transformers_decoders.py; formats/huggingface.py.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.export.network import Side, TransformerNetwork, blocks, positions, usual_heads
from weft.nn.positions import Learned, sinusoid
from weft.text.vocabulary import EOS, PAD, SOS

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "silu": "silu"}
EPSILON = 1e-5  # of the LayerNorms of all five families
UNUSED = {"bart": 2, "mbart": 2}  # rows before the learned positions
ARCHITECTURES = {
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
    "bart": "BartForConditionalGeneration",
    "mbart": "MBartForConditionalGeneration",
    "blenderbot": "BlenderbotForConditionalGeneration",
}
_FAMILIES = {
    ("after", "sinusoidal", False): "marian",
    ("before", "sinusoidal", False): "pegasus",
    ("after", "learned", True): "bart",
    ("before", "learned", True): "mbart",
    ("before", "learned", False): "blenderbot",
}


class LibraryModel(NamedTuple):
    """A model in the library's form."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]


def family(network: TransformerNetwork) -> str:
    """The family of an encoder-decoder."""
    found = set()
    for name, part in network.sides:
        block = blocks(part)[0]
        check_usual(name, part, block)
        base: Any = getattr(part.positions, "base", 10000.0)
        where = positions(part)
        entry = not isinstance(part.entry_norm, nn.Identity)
        key = (block.norm, where, entry)
        if key not in _FAMILIES or base != 10000.0 or block.attention_norm.eps != EPSILON:
            raise ConfigError(
                f"model.{name}: --to huggingface expects sinusoids of base 10000 without entry_norm, or "
                "learned positions with norm before or with entry_norm, and norm_epsilon 1e-5, got norm "
                f"{block.norm}, positions {where}, entry_norm {str(entry).lower()}; use --to ctranslate2"
            )
        found.add((_FAMILIES[key], part.size, block.network.activation))
    if len(found) > 1:
        raise ConfigError(
            "model: --to huggingface expects the same norm, positions, size and activation in encoder and "
            "decoder, got different ones; use --to ctranslate2"
        )
    if network.source is not network.target:
        raise ConfigError(
            "data.vocabulary: --to huggingface expects one vocabulary for both sides, got two; train with "
            "data.vocabulary.shared=true, or use --to ctranslate2"
        )
    return str(found.pop()[0])


def check_usual(name: str, part: Side, block: Any) -> None:
    """Check that blocks, heads and networks are those of Vaswani et al. 2017."""
    if block.norm == "parallel" or not usual_heads(part):
        raise ConfigError(
            f"model.{name}: --to huggingface expects blocks and heads as in Vaswani et al. 2017, got "
            "parallel blocks or a variant of heads; use --to onnx"
        )
    if not isinstance(block.attention_norm, nn.LayerNorm) or block.network.activation not in ACTIVATIONS:
        raise ConfigError(
            f"model.{name}: --to huggingface expects LayerNorm and one of {', '.join(ACTIVATIONS)}, got "
            f"{type(block.attention_norm).__name__} and {block.network.activation}; use --to ctranslate2"
        )


def pair(network: TransformerNetwork) -> LibraryModel:
    """An encoder-decoder of a checked family."""
    kind, decoder = family(network), network.decoder
    model: Any = network.model
    encoder: Any = network.encoder
    move = torch.arange(decoder.size)
    if positions(decoder) == "sinusoidal":
        move = torch.cat([move[0::2], move[1::2]])
    source, target, head = (
        one[:, move] for one in (model.source_embed.table.weight, model.embed.table.weight, model.head.weight)
    )
    tied = torch.equal(source, target) and torch.equal(head, target)
    tensors = {"final_logits_bias": model.head.bias[None]}
    if tied or kind != "marian":
        tensors["model.shared.weight"] = target
    if not tied:
        tensors |= {
            "model.encoder.embed_tokens.weight": source,
            "model.decoder.embed_tokens.weight": target,
            "lm_head.weight": head,
        }
    for name, part in network.sides:
        tensors |= _side(f"model.{name}", part, move, network.length, UNUSED.get(kind, 0))
    config = {
        "architectures": [ARCHITECTURES[kind]],
        "model_type": kind,
        "is_encoder_decoder": True,
        "vocab_size": len(target),
        "d_model": decoder.size,
        "activation_function": ACTIVATIONS[blocks(decoder)[0].network.activation],
        "scale_embedding": model.embed.scale != 1.0,
        "max_position_embeddings": network.length,
        "tie_word_embeddings": tied,
        "pad_token_id": PAD,
        "bos_token_id": SOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": SOS,
        "forced_eos_token_id": None,
    }
    if kind == "marian":
        config |= {"share_encoder_decoder_embeddings": tied, "decoder_vocab_size": len(target)}
    for name, part in (("encoder", encoder), ("decoder", decoder)):
        block = blocks(part)[0]
        config |= {
            f"{name}_layers": len(part.blocks),
            f"{name}_attention_heads": block.attention.num_heads,
            f"{name}_ffn_dim": block.network.second.in_features,
        }
    return LibraryModel(config, tensors)


def _side(name: str, part: Side, move: Tensor, length: int, unused: int) -> dict[str, Tensor]:
    """The tensors of an encoder or a decoder, with the features of the residual stream moved."""
    tensors: dict[str, Tensor] = {}
    if isinstance(part.positions, Learned):
        table = part.positions.table.weight[:length]
        tensors[f"{name}.embed_positions.weight"] = torch.cat([table.new_zeros(unused, part.size), table])
    elif blocks(part)[0].norm == "before":  # Pegasus's files have the sinusoids, Marian's do not
        waves = sinusoid(torch.arange(length), part.size, dtype=torch.float64).float()
        tensors[f"{name}.embed_positions.weight"] = waves[:, move]
    if not isinstance(part.entry_norm, nn.Identity):
        tensors |= norm(f"{name}.layernorm_embedding", part.entry_norm, move)
    if not isinstance(part.last_norm, nn.Identity):
        tensors |= norm(f"{name}.layer_norm", part.last_norm, move)
    for number, block in enumerate(blocks(part)):
        here = f"{name}.layers.{number}"
        tensors |= _attention(f"{here}.self_attn", block.attention, move)
        tensors |= norm(f"{here}.self_attn_layer_norm", block.attention_norm, move)
        if hasattr(block, "look"):
            tensors |= _attention(f"{here}.encoder_attn", block.look, move)
            tensors |= norm(f"{here}.encoder_attn_layer_norm", block.look_norm, move)
        tensors |= linear(f"{here}.fc1", block.network.first, columns=move)
        tensors |= linear(f"{here}.fc2", block.network.second, rows=move)
        tensors |= norm(f"{here}.final_layer_norm", block.network_norm, move)
    return tensors


def _attention(name: str, attention: Any, move: Tensor) -> dict[str, Tensor]:
    every = torch.arange(attention.key_value.out_features)
    return (
        linear(f"{name}.q_proj", attention.query, columns=move)
        | linear(f"{name}.k_proj", attention.key_value, rows=every.chunk(2)[0], columns=move)
        | linear(f"{name}.v_proj", attention.key_value, rows=every.chunk(2)[1], columns=move)
        | linear(f"{name}.out_proj", attention.out, rows=move)
    )


def norm(name: str, part: Any, move: Tensor | None = None) -> dict[str, Tensor]:
    """A LayerNorm; without a bias it has a zero one."""
    bias = torch.zeros_like(part.weight) if part.bias is None else part.bias
    found = {f"{name}.weight": part.weight, f"{name}.bias": bias}
    return found if move is None else {key: tensor[move] for key, tensor in found.items()}


def linear(
    name: str, layer: Any, *, rows: Tensor | None = None, columns: Tensor | None = None
) -> dict[str, Tensor]:
    """A linear layer with some of its outputs and its inputs in another order; zeros for no bias."""
    weight = layer.weight
    bias = weight.new_zeros(len(weight)) if layer.bias is None else layer.bias
    if rows is not None:
        weight, bias = weight[rows], bias[rows]
    return {f"{name}.weight": weight if columns is None else weight[:, columns], f"{name}.bias": bias}
