"""The parts of Marian's models: which of our tensors is made from which of theirs. Read next: marian.py.

Source: marian-dev 1.12, the classes EncoderTransformer, DecoderTransformer, SSRU, Output and layerNorm.
"""

import re
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Origins, TensorOrigin
from weft.importing.families.translators import shifted_waves
from weft.importing.kits.reading import ToolkitModel, ToolkitSettings
from weft.importing.names import MappedPart, tensor, zeros

NORM_EPSILON = 1e-6
LENGTH = 1024  # positions; Marian computes them, and reads at most 1000 tokens
ORDERS = {
    ("n", "da"): ("before", "layer"),
    ("n", "a"): ("before", "layer"),
    ("r", "da"): ("before", "rms"),
    ("r", "a"): ("before", "rms"),
    ("", "dan"): ("after", "layer"),
    ("", "an"): ("after", "layer"),
    ("", "dar"): ("after", "rms"),
    ("", "ar"): ("after", "rms"),
}
"""Place and kind of the norms by the steps before and after a sublayer: d dropout, a residual, n r norms."""
ACTIVATIONS = {"relu": "relu", "swish": "silu"}  # gelu is x sigmoid(1.702 x) up to 1.12, exact later
WITHOUT: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "transformer-no-projection": (False,),
    "transformer-pool": (False,),
    "transformer-train-positions": (False,),
    "transformer-rnn-projection": (False,),
    "right-left": (False,),
    "ulr": (False,),
    "lemma-dim-emb": (0,),
    "factors-dim-emb": (0,),
    "input-types": ([], ["sequence"], ["sequence", "sequence"]),
    "transformer-postprocess-emb": ("d", ""),
}
"""Settings with the values that can be imported."""


class MarianNorms(NamedTuple):
    """Where the norms are, and of which kind."""

    place: str
    kind: str

    def origins(self, ours: str, before: str, after: str) -> Origins:
        """A norm, named otherwise before a sublayer and after it."""
        theirs, end = (before, "_pre") if self.place == "before" else (after, "")
        return self.named(ours, theirs, end)

    def named(self, ours: str, theirs: str, end: str = "") -> Origins:
        """The gain, and the bias of LayerNorm."""
        if self.kind == "rms":
            return row(f"{ours}.weight", f"{theirs}_rms_scale{end}")
        return {
            **row(f"{ours}.weight", f"{theirs}_ln_scale{end}"),
            **row(f"{ours}.bias", f"{theirs}_ln_bias{end}"),
        }


def row(ours: str, theirs: str) -> Origins:
    """A vector, which is a row [1, D] in the file."""
    return tensor(ours, theirs, torch.Tensor.flatten)


def linear(ours: str, theirs: str, end: str) -> Origins:
    """The linear layer x W + b."""
    return {
        **tensor(f"{ours}.weight", f"{theirs}_W{end}", torch.Tensor.t),
        **row(f"{ours}.bias", f"{theirs}_b{end}"),
    }


def origins_of(model: ToolkitModel) -> tuple[dict[str, Any], dict[str, Any], Origins]:
    """The recipe's sections `model` and `model.embedding`, and the source of each of our tensors."""
    settings = model.settings
    settings.check(WITHOUT)
    size, norms = settings.number("dim-emb"), _norms(settings)
    every = settings.flag("tied-embeddings-all")
    one = every or settings.flag("tied-embeddings-src")
    tied = every or settings.flag("tied-embeddings")
    tables = ("Wemb", "Wemb") if one else ("encoder_Wemb", "decoder_Wemb")
    origins = {
        **tensor("source_embed.table.weight", tables[0]),
        **tensor("embed.table.weight", tables[1]),
        **_head(model, tables[1] if tied else ""),
    }
    ours = {}
    for side in ("encoder", "decoder"):
        ours[side], more = _side(model, side, size, norms)
        origins |= more
    return ours, {"size": size, "scaled": True, "dropout": 0.0, "tied": tied}, origins


def _head(model: ToolkitModel, table: str) -> Origins:
    theirs, rows = "decoder_ff_logit_out", model.state.get(table or "decoder_ff_logit_out_Wt")
    found = tensor("head.weight", table or f"{theirs}_Wt")
    if not table and rows is None:  # before 1.8 it was not transposed
        found = tensor("head.weight", f"{theirs}_W", torch.Tensor.t)
        rows = model.state.get(f"{theirs}_W", torch.empty(0, 0)).t()
    if model.settings.flag("output-omit-bias"):
        return found | zeros("head.bias", 0 if rows is None else len(rows))
    return found | row("head.bias", f"{theirs}_b")


def _side(model: ToolkitModel, side: str, size: int, norms: MarianNorms) -> MappedPart:
    """The encoder or the decoder."""
    settings, decodes = model.settings, side == "decoder"
    depth = settings.layers(f"{side[:3]}-depth", len(model.state))
    hybrid = decodes and _is_recurrent(settings)
    origins: Origins = {f"{side}.positions.table.weight": TensorOrigin((), lambda: positions(size))}
    for layer, number in enumerate(_numbers(settings, depth) if decodes else range(1, depth + 1)):
        ours, theirs = f"{side}.blocks.{layer}", f"{side}_l{number}"
        if hybrid:
            origins |= {
                f"{ours}.cell.weight_x": TensorOrigin((f"{theirs}_rnn_Wf", f"{theirs}_rnn_W"), _columns),
                **row(f"{ours}.cell.bias", f"{theirs}_rnn_bf"),
                **norms.origins(f"{ours}.cell_norm", f"{theirs}_rnn", f"{theirs}_rnn_ffn"),
            }
        else:
            origins |= _attention(f"{ours}.attention", f"{theirs}_self", norms)
        if decodes:
            origins |= _attention(f"{ours}.look", f"{theirs}_context", norms)
        network = f"{theirs}_ffn"
        origins |= linear(f"{ours}.network.first", network, "1")
        origins |= linear(f"{ours}.network.second", network, "2")
        origins |= norms.origins(f"{ours}.network_norm", f"{network}_ffn", f"{network}_ffn")
    if norms.place == "before":
        origins |= norms.named(f"{side}.last_norm", f"{side}_top")
    recipe = _recipe(settings, side, size, norms)
    return recipe | ({"use": "hybrid", "cell": "ssru"} if hybrid else {}), origins


def _recipe(settings: ToolkitSettings, side: str, size: int, norms: MarianNorms) -> dict[str, Any]:
    """The recipe's section of a side."""

    def of_side(name: str, usual: int) -> Any:
        own = settings.get(f"transformer-decoder-{name}") if side == "decoder" else 0
        return own or settings.number(f"transformer-{name}", usual)

    depth = "transformer-ffn-depth"
    settings._replace(values={depth: of_side("ffn-depth", 2)}).choice(depth, 2)
    return {
        "use": "transformer",
        "size": size,
        "num_layers": settings.number(f"{side[:3]}-depth"),
        "num_heads": settings.num_heads("transformer-heads", "dim-emb"),
        "inner": of_side("dim-ffn", 2048),
        "norm": norms.place,
        "norm_kind": norms.kind,
        "norm_epsilon": NORM_EPSILON,
        "activation": ACTIVATIONS[settings.choice("transformer-ffn-activation", *ACTIVATIONS, usual="swish")],
        "positions": "learned",  # loaded as a table: Marian's sinusoids are not those of the paper
        "max_length": LENGTH,
        "dropout": settings.number("transformer-dropout", 0.1),
        "attention_dropout": settings.number("transformer-dropout-attention", 0.0),
    }


def _is_recurrent(settings: ToolkitSettings) -> bool:
    kind = settings.choice("transformer-decoder-autoreg", "self-attention", "rnn")
    if kind == "rnn":
        settings.choice("dec-cell", "ssru", usual="gru")
        settings.choice("layer-normalization", False)
    return bool(kind == "rnn")


def _numbers(settings: ToolkitSettings, depth: int) -> list[int]:
    """The number of each decoder layer's parameters, from 1; layers with the same number share them."""
    found = settings.get("transformer-tied-layers") or list(range(1, depth + 1))
    if not isinstance(found, list) or len(found) != depth or not all(type(one) is int for one in found):
        raise CheckpointError(
            f"{settings.place}: transformer-tied-layers: expected {depth} numbers of layers, got "
            f"{str(found)[:40]}"
        )
    return found


def _norms(settings: ToolkitSettings) -> MarianNorms:
    """Where the norms are; in a model with norms before sublayers, also at the top.

    Before 1.10 Marian left out the norm of keys and values there.
    """
    norms = MarianNorms(*settings.order("transformer-preprocess", "transformer-postprocess", ORDERS))
    steps = str(settings.get("transformer-preprocess") or "")
    top = str(settings.get("transformer-postprocess-top") or "")
    wanted = steps if norms.place == "before" else ""
    if top != wanted:
        raise ConfigError(
            f"{settings.place}: transformer-postprocess-top: expected {wanted!r} with transformer-preprocess "
            f"{steps!r}, got {top[:20]!r}, which Weft does not support"
        )
    version = re.match(r"v?(\d+)\.(\d+)", str(settings.get("version", "")))
    if norms.place == "before" and version and tuple(map(int, version.groups())) < (1, 10):
        raise ConfigError(
            f"{settings.place}: version: expected 1.10 or later with transformer-preprocess {steps!r}, got "
            f"{str(settings.get('version'))[:20]}, which did not normalise keys and values"
        )
    return norms


def _attention(ours: str, theirs: str, norms: MarianNorms) -> Origins:
    return {
        **linear(f"{ours}.out", theirs, "o"),
        **linear(f"{ours}.query", theirs, "q"),
        f"{ours}.key_value.weight": TensorOrigin((f"{theirs}_Wk", f"{theirs}_Wv"), _columns),
        f"{ours}.key_value.bias": TensorOrigin(
            (f"{theirs}_bk", f"{theirs}_bv"), lambda *all: torch.cat(all, 1)[0]
        ),
        **norms.origins(f"{ours}_norm", f"{theirs}_Wo", f"{theirs}_Wo"),
    }


def _columns(*parts: Tensor) -> Tensor:
    """Several matrices of x W, as one of ours."""
    return torch.cat(parts, 1).t()


def positions(size: int) -> Tensor:
    """Marian's sinusoids; its log 10000 is in float32."""
    return shifted_waves(LENGTH, size, 0, "dim-emb", log_base=float(torch.tensor(10000.0).log()))
