"""Weft's language models in the forms of the `transformers` library: GPT-2, Llama and BERT.

Read next: formats/huggingface.py.
"""

from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.export.network import TransformerNetwork, blocks, positions
from weft.export.transformers_models import ACTIVATIONS, LibraryModel, check_usual, linear, norm
from weft.models import Labeller
from weft.nn.distances import Rotary
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.transformed import Transformed
from weft.nn.norms import RMSNorm
from weft.nn.positions import Learned, sinusoid
from weft.text.vocabulary import EOS, PAD


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
