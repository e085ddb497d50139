"""Weft's Transformers in the forms of the `transformers` library: which family, its config.json, its tensors.

| family | norm | positions | norm of embeddings |
|---|---|---|---|
| Marian | after | sinusoids | no |
| Pegasus | before | sinusoids | no |
| BART | after | learned | yes |
| mBART | before | learned | yes |
| Blenderbot | before | learned | no |

Their sinusoids have all sines first and are computed on load, Weft's alternate. Instead of the table, the
features of the residual stream are moved, which changes nothing else: exact. Language models become GPT-2 or
Llama, masked ones BERT. Read next: formats/huggingface.py.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.export.network import Side, TransformerNetwork, blocks, positions, usual_heads
from weft.models import Labeller
from weft.nn.distances import Rotary
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.transformed import Transformed
from weft.nn.norms import RMSNorm
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


def causal(network: TransformerNetwork) -> LibraryModel:
    """A decoder without an encoder, as GPT-2 or, with rotary positions, as Llama."""
    head: Any = network.model.head
    bias = head.bias
    if not torch.equal(bias, bias[:1].expand_as(bias)):
        raise ConfigError(
            "model.embedding.bias: --to huggingface expects false, since GPT-2 and Llama have no bias in the "
            "output layer, got true; train with model.embedding.bias=false, or use --to ctranslate2"
        )
    return _llama(network) if positions(network.decoder) == "rotary" else _gpt2(network)


def _common(network: TransformerNetwork) -> LibraryModel:
    """Sizes and embeddings; a scaled table is multiplied out, and then no longer the output layer's."""
    model: Any = network.model
    decoder = network.decoder
    table, head = model.embed.table.weight * model.embed.scale, model.head.weight
    tied = torch.equal(table, head)
    config = {
        "vocab_size": len(head),
        "tie_word_embeddings": tied,
        "bos_token_id": EOS,  # a line end is read before each text
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        "hidden_size": decoder.size,
    }
    return LibraryModel(config, {"table": table} | ({} if tied else {"lm_head.weight": head}))


def _gpt2(network: TransformerNetwork) -> LibraryModel:
    decoder, found = network.decoder, _common(network)
    block = blocks(decoder)[0]
    check_usual("decoder", decoder, block)
    if block.norm != "before" or not isinstance(decoder.entry_norm, nn.Identity):
        raise ConfigError(
            "model.decoder: --to huggingface expects norm before without entry_norm, got norm "
            f"{block.norm}; use --to ctranslate2"
        )
    size, heads = found.config.pop("hidden_size"), block.attention.num_heads
    config = {
        **found.config,
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": size,
        "n_head": heads,
        "n_layer": len(decoder.blocks),
        "n_inner": block.network.second.in_features,
        "n_positions": network.length,
        "activation_function": ACTIVATIONS[block.network.activation],
        "layer_norm_epsilon": block.attention_norm.eps,
    }
    tensors = {"transformer.wte.weight": found.tensors.pop("table"), **found.tensors}
    tensors["transformer.wpe.weight"] = _table(decoder, network.length)
    tensors |= norm("transformer.ln_f", decoder.last_norm)
    for number, one in enumerate(blocks(decoder)):
        here = f"transformer.h.{number}"
        query, rest = linear("x", one.attention.query), linear("x", one.attention.key_value)
        tensors |= {
            f"{here}.attn.c_attn.weight": torch.cat([query["x.weight"], rest["x.weight"]]).T,
            f"{here}.attn.c_attn.bias": torch.cat([query["x.bias"], rest["x.bias"]]),
        }
        tensors |= _product(f"{here}.attn.c_proj", one.attention.out)
        tensors |= _product(f"{here}.mlp.c_fc", one.network.first)
        tensors |= _product(f"{here}.mlp.c_proj", one.network.second)
        tensors |= norm(f"{here}.ln_1", one.attention_norm) | norm(f"{here}.ln_2", one.network_norm)
    return LibraryModel(config, tensors)


def _product(name: str, layer: Any) -> dict[str, Tensor]:
    """A linear layer as GPT-2 has it, x W + b."""
    found = linear(name, layer)
    return found | {f"{name}.weight": found[f"{name}.weight"].T}


def _table(decoder: Any, length: int) -> Tensor:
    """Vectors added at each position."""
    if positions(decoder) == "learned":
        return decoder.positions.table.weight[:length]  # type: ignore[no-any-return]
    if positions(decoder) == "sinusoidal":
        waves = sinusoid(torch.arange(length), decoder.size, decoder.positions.base, dtype=torch.float64)
        return waves.float()
    if positions(decoder) == "none":
        return torch.zeros(length, decoder.size)
    raise ConfigError(
        "model.decoder.positions: --to huggingface expects learned, sinusoidal, rotary or none, got another "
        "kind; use --to onnx"
    )


def _llama(network: TransformerNetwork) -> LibraryModel:
    decoder, found = network.decoder, _common(network)
    block, distance = blocks(decoder)[0], decoder.distance
    heads = block.attention
    width = heads.query.out_features // heads.num_heads
    assert isinstance(distance, Rotary)
    if (
        block.norm != "before"
        or not isinstance(block.attention_norm, RMSNorm)
        or block.network.activation != "swiglu"
        or not isinstance(heads.query_norm, nn.Identity)
        or (heads.query.bias is None) != (heads.out.bias is None)
        or distance.head_size != width
        or not isinstance(decoder.entry_norm, nn.Identity)
    ):
        raise ConfigError(
            "model.decoder: --to huggingface expects norm before, norm_kind rms, activation swiglu and usual "
            "heads beside rotary positions, as in Llama, got something else; use --to ctranslate2"
        )
    config = {
        **found.config,
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": len(decoder.blocks),
        "num_attention_heads": heads.num_heads,
        "num_key_value_heads": heads.shared,
        "head_dim": width,
        "intermediate_size": block.network.second.in_features,
        "hidden_act": "silu",
        "rms_norm_eps": block.attention_norm.eps,
        "rope_theta": distance.base,
        "rope_parameters": {"rope_type": "default", "rope_theta": distance.base},
        "max_position_embeddings": network.length,
        "attention_bias": heads.query.bias is not None,
        "mlp_bias": block.network.first.bias is not None,
    }
    tensors = {"model.embed_tokens.weight": found.tensors.pop("table"), **found.tensors}
    last: Any = decoder.last_norm
    tensors["model.norm.weight"] = last.weight
    for number, one in enumerate(blocks(decoder)):
        tensors |= _llama_block(f"model.layers.{number}", one, width)
    return LibraryModel(config, tensors)


def _llama_block(here: str, block: Any, width: int) -> dict[str, Tensor]:
    """Weft turns features 2i and 2i + 1 together, Llama i and i + K/2: rows of queries and keys are moved."""
    heads = block.attention
    rows = torch.arange(heads.query.out_features).view(-1, width // 2, 2).transpose(1, 2).flatten()
    kept = heads.shared * width
    values = torch.arange(kept, 2 * kept)
    gate, up = torch.arange(block.network.first.out_features).chunk(2)
    found = (
        linear(f"{here}.self_attn.q_proj", heads.query, rows=rows)
        | linear(f"{here}.self_attn.k_proj", heads.key_value, rows=rows[:kept])
        | linear(f"{here}.self_attn.v_proj", heads.key_value, rows=values)
        | linear(f"{here}.self_attn.o_proj", heads.out)
        | linear(f"{here}.mlp.gate_proj", block.network.first, rows=gate)
        | linear(f"{here}.mlp.up_proj", block.network.first, rows=up)
        | linear(f"{here}.mlp.down_proj", block.network.second)
    )
    if heads.query.bias is None:
        found = {name: tensor for name, tensor in found.items() if not name.endswith(".bias")}
    return found | {
        f"{here}.input_layernorm.weight": block.attention_norm.weight,
        f"{here}.post_attention_layernorm.weight": block.network_norm.weight,
    }


def bert(model: Labeller) -> LibraryModel:
    """A masked language model as BERT."""
    encoder, head = model.encoder, model.head
    embed: Any = model.embed
    assert isinstance(head, Transformed)
    block = blocks(encoder)[0] if isinstance(encoder, TransformerEncoder) else None
    if (
        block is None
        or not isinstance(encoder, TransformerEncoder)
        or not isinstance(encoder.positions, Learned)
        or isinstance(encoder.entry_norm, nn.Identity)
        or block.norm != "after"
        or block.network.activation != "gelu"
        or not isinstance(encoder.project, nn.Identity)
        or len({encoder.entry_norm.eps, block.attention_norm.eps, head.norm.eps}) > 1
    ):
        raise ConfigError(
            "model.encoder: --to huggingface expects a Transformer as in BERT, got another encoder; "
            "train with model.encoder={use: transformer, norm: after, positions: learned, entry_norm: true, "
            "activation: gelu}"
        )
    check_usual("encoder", encoder, block)
    size = embed.table.num_embeddings
    return LibraryModel(
        _bert_config(encoder, block, size, head.norm.eps), _bert_tensors(encoder, embed, head)
    )


def _bert_config(encoder: TransformerEncoder, block: Any, size: int, epsilon: float) -> dict[str, Any]:
    positions: Any = encoder.positions
    return {
        "architectures": ["BertForMaskedLM"],
        "model_type": "bert",
        "vocab_size": size,
        "hidden_size": encoder.size,
        "num_hidden_layers": len(encoder.blocks),
        "num_attention_heads": block.attention.num_heads,
        "intermediate_size": block.network.second.in_features,
        "hidden_act": "gelu",
        "max_position_embeddings": positions.table.num_embeddings,
        "type_vocab_size": 1,
        "layer_norm_eps": epsilon,
        "pad_token_id": PAD,
        "tie_word_embeddings": False,
    }


def _bert_tensors(encoder: TransformerEncoder, embed: Any, head: Transformed) -> dict[str, Tensor]:
    where: Any = encoder.positions
    table = where.table.weight
    entry, top = "bert.embeddings", "cls.predictions"
    tensors = {
        f"{entry}.word_embeddings.weight": embed.table.weight * embed.scale,
        f"{entry}.position_embeddings.weight": table,
        f"{entry}.token_type_embeddings.weight": table.new_zeros(1, encoder.size),
        f"{top}.decoder.weight": head.symbols.weight,
        f"{top}.decoder.bias": head.symbols.bias,
        f"{top}.bias": head.symbols.bias,
        **norm(f"{entry}.LayerNorm", encoder.entry_norm),
        **linear(f"{top}.transform.dense", head.layer),
        **norm(f"{top}.transform.LayerNorm", head.norm),
    }
    for number, one in enumerate(blocks(encoder)):
        here = f"bert.encoder.layer.{number}"
        key, value = torch.arange(2 * encoder.size).chunk(2)
        tensors |= linear(f"{here}.attention.self.query", one.attention.query)
        tensors |= linear(f"{here}.attention.self.key", one.attention.key_value, rows=key)
        tensors |= linear(f"{here}.attention.self.value", one.attention.key_value, rows=value)
        tensors |= linear(f"{here}.attention.output.dense", one.attention.out)
        tensors |= norm(f"{here}.attention.output.LayerNorm", one.attention_norm)
        tensors |= linear(f"{here}.intermediate.dense", one.network.first)
        tensors |= linear(f"{here}.output.dense", one.network.second)
        tensors |= norm(f"{here}.output.LayerNorm", one.network_norm)
    return tensors
