"""Import GPT-NeoX and Pythia: parallel blocks, rotary positions in a part of each head."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.importing.checkpoint import Checkpoint, Origins, TensorOrigin, fill, prefixed
from weft.importing.families.decoders import decoder_model
from weft.importing.families.rotations import paired, rotation
from weft.importing.names import activation, architecture, plain
from weft.models import Generator

TABLE, HEAD = "gpt_neox.embed_in.weight", "embed_out.weight"
SPARE = (HEAD, ".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq")


def gpt_neox(foreign: Checkpoint) -> Generator:
    """A `GPTNeoXForCausalLM`; its logits have no bias, so ours is zero.

    Source: Black et al. 2022; Biderman et al. 2023 (Pythia).
    """
    own = settings(foreign)
    foreign = prefixed(foreign, "gpt_neox.", "embed_out.")
    model, origins = decoder_model(foreign, own, TABLE, HEAD, dropout=own["dropout"], tied=False)
    origins |= plain("decoder.last_norm", "gpt_neox.final_layer_norm")
    for layer in range(own["num_layers"]):
        ours, theirs = f"decoder.blocks.{layer}", f"gpt_neox.layers.{layer}"
        origins |= _attention(f"{ours}.attention", f"{theirs}.attention", own)
        origins |= {
            **plain(f"{ours}.attention.out", f"{theirs}.attention.dense"),
            **plain(f"{ours}.attention_norm", f"{theirs}.input_layernorm"),
            **plain(f"{ours}.network.first", f"{theirs}.mlp.dense_h_to_4h"),
            **plain(f"{ours}.network.second", f"{theirs}.mlp.dense_4h_to_h"),
            **plain(f"{ours}.network_norm", f"{theirs}.post_attention_layernorm"),
        }
    return fill(model, foreign, origins, spare=SPARE)


def settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our decoder, as in a recipe."""
    architecture(foreign, "GPTNeoXForCausalLM")
    foreign.need("attention_bias", True)
    size, num_heads = foreign.setting("hidden_size"), foreign.setting("num_attention_heads")
    turning = rotation(foreign, theta="rotary_emb_base", share="rotary_pct", usual=0.25)
    return {
        "size": size,
        "num_layers": foreign.setting("num_hidden_layers"),
        "num_heads": num_heads,
        "inner": foreign.setting("intermediate_size"),
        "norm": "parallel" if foreign.config.get("use_parallel_residual", True) else "before",
        "norm_epsilon": foreign.setting("layer_norm_eps", default=1e-5),
        "activation": activation(foreign, "hidden_act"),
        **turning.settings,
        "dropout": foreign.setting("hidden_dropout", default=0.0),
        "attention_dropout": foreign.setting("attention_dropout", default=0.0),
        "heads": {"rotary": int(size // num_heads * turning.share)},
    }


def _attention(ours: str, theirs: str, own: dict[str, Any]) -> Origins:
    """Their rows are q, k, v of the first head, then of the second."""
    num_heads, reorder = own["num_heads"], paired(own["num_heads"], own["heads"]["rotary"])

    def rows(*which: int) -> Callable[[Tensor], Tensor]:
        def picked(packed: Tensor) -> Tensor:
            each = packed.unflatten(0, (num_heads, 3, -1)).unbind(1)
            return torch.cat(
                [each[n].flatten(0, 1) if n == 2 else reorder(each[n].flatten(0, 1)) for n in which]
            )

        return picked

    packed = f"{theirs}.query_key_value"
    return {
        f"{ours}.{name}.{part}": TensorOrigin((f"{packed}.{part}",), rows(*which))
        for name, which in (("query", (0,)), ("key_value", (1, 2)))
        for part in ("weight", "bias")
    }
