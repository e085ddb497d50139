"""fairseq's LSTM for translation: Luong's attention with input feeding. Read next: fairseq_parts.py."""

from collections.abc import Callable

import torch
from torch import Tensor

from weft.importing.checkpoint import TensorOrigin
from weft.importing.kits.fairseq_parts import FairseqCheckpoint, OurParts, tables
from weft.importing.kits.mapping import cell_of, layer_of, recurrent, zeros
from weft.importing.names import plain, tensor

ARCHITECTURES = ("lstm", "lstm_wiseman_iwslt_de_en", "lstm_luong_wmt_en_de")


def lstm(found: FairseqCheckpoint) -> OurParts:
    """An LSTM; missing settings have the values of its `base_architecture`."""
    size, dropout = found.same("embed_dim", 512), found.number("dropout", 0.1)
    tied = found.flag("share_decoder_input_output_embed") or found.flag("share_all_embeddings")
    layers = found.layers("encoder", 1)
    both, width = found.flag("encoder_bidirectional"), found.number("encoder_hidden_size", size)
    hidden = found.number("decoder_hidden_size", size)
    attends = str(found.settings.get("decoder_attention", "1")).strip().lower() not in ("0", "false", "none")
    origins = tables("decoder.embed_tokens.weight" if tied else "decoder.fc_out.weight")
    origins |= _logits(found, tied)
    for layer in range(layers):
        origins |= recurrent(f"encoder.stack.forwards.{layer}", layer_of("encoder.lstm", layer), "lstm")
        if both:
            theirs = layer_of("encoder.lstm", layer, backward=True)
            origins |= recurrent(f"encoder.stack.backwards.{layer}", theirs, "lstm")
        origins |= recurrent(f"decoder.stack.forwards.{layer}", cell_of(f"decoder.layers.{layer}"), "lstm")
        if (1 + both) * width != hidden:
            for index, name in enumerate(("hidden", "cell")):
                origins |= plain(f"decoder.bridge.maps.{layer}.{index}", f"decoder.encoder_{name}_proj")
    if attends:
        origins |= {
            **tensor("decoder.attention.score.weight.weight", "decoder.attention.input_proj.weight", _turned),
            **tensor("decoder.readout.0.weight", "decoder.attention.output_proj.weight", _swapped(hidden)),
            **zeros("decoder.readout.0.bias", hidden),
        }
    model = {
        "encoder": {
            "use": "recurrent",
            "cell": "lstm",
            "sizes": [width] * layers,
            "bidirectional": both,
            "dropout": found.number("encoder_dropout_out", dropout),
        },
        "decoder": {
            "use": "recurrent",
            "cell": "lstm",
            "sizes": [hidden] * layers,
            "score": "bilinear",
            "enters": "late" if attends else "never",
            "input_feeding": True,
            "bridge": "linear",
            "dropout": found.number("decoder_dropout_out", dropout),
        },
    }
    rate = found.number("decoder_dropout_in", dropout)
    embedding = {"size": size, "dropout": rate, "tied": tied, "scaled": False}
    return OurParts(model, embedding, 129, origins, found.state)


def _logits(found: FairseqCheckpoint, tied: bool) -> dict[str, TensorOrigin]:
    """The output layer of an LSTM; a linear layer before it becomes part of it, which changes no output."""
    extra = ("decoder.additional_fc.weight", "decoder.additional_fc.bias")
    table, bias = "decoder.fc_out.weight", "decoder.fc_out.bias"
    if tied:
        table = "decoder.embed_tokens.weight"
        if extra[0] not in found.state:
            return zeros("head.bias", len(found.state.get(table, ())))
        project = tensor("head.project.weight", extra[0])
        return project | {"head.bias": TensorOrigin((table, extra[1]), lambda rows, one: rows @ one)}
    if extra[0] not in found.state:
        return tensor("head.bias", bias)
    return {
        "head.weight": TensorOrigin((table, extra[0]), lambda rows, one: rows @ one),
        "head.bias": TensorOrigin((table, extra[1], bias), lambda rows, one, own: rows @ one + own),
    }


def _turned(weight: Tensor) -> Tensor:
    return weight.T.contiguous()


def _swapped(hidden: int) -> Callable[[Tensor], Tensor]:
    """W of [h; out] from W of [out; h]."""
    return lambda weight: torch.cat([weight[:, -hidden:], weight[:, :-hidden]], 1)
