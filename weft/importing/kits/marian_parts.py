"""The parts of Marian's models: which of our tensors is made from which of theirs. Read next: marian.py.

Source: marian-dev 1.12, the classes EncoderTransformer, DecoderTransformer, SSRU, Output and layerNorm.
"""

import re
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import TensorOrigin
from weft.importing.families.translators import shifted_waves
from weft.importing.kits.reading import choice, layers, number
from weft.importing.names import tensor, zeros

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
OFF = (
    "transformer-no-projection",
    "transformer-pool",
    "transformer-train-positions",
    "transformer-rnn-projection",
    "right-left",
    "ulr",
)


class MarianModel(NamedTuple):
    """A model.npz."""

    settings: dict[str, Any]
    state: dict[str, Tensor]
    place: str


class MarianNorms(NamedTuple):
    """Where the norms are, and of which kind."""

    place: str
    kind: str

    def origins(self, ours: str, before: str, after: str) -> dict[str, TensorOrigin]:
        """A norm, named otherwise before a sublayer and after it."""
        theirs, end = (before, "_pre") if self.place == "before" else (after, "")
        return self.named(ours, theirs, end)

    def named(self, ours: str, theirs: str, end: str = "") -> dict[str, TensorOrigin]:
        """The gain, and the bias of LayerNorm."""
        if self.kind == "rms":
            return row(f"{ours}.weight", f"{theirs}_rms_scale{end}")
        return {
            **row(f"{ours}.weight", f"{theirs}_ln_scale{end}"),
            **row(f"{ours}.bias", f"{theirs}_ln_bias{end}"),
        }


def row(ours: str, theirs: str) -> dict[str, TensorOrigin]:
    """A vector, which is a row [1, D] in the file."""
    return tensor(ours, theirs, torch.Tensor.flatten)


def linear(ours: str, theirs: str, end: str) -> dict[str, TensorOrigin]:
    """The linear layer x W + b."""
    return {
        **tensor(f"{ours}.weight", f"{theirs}_W{end}", torch.Tensor.t),
        **row(f"{ours}.bias", f"{theirs}_b{end}"),
    }


def origins_of(model: MarianModel) -> tuple[dict[str, Any], dict[str, Any], dict[str, TensorOrigin]]:
    """The recipe's sections `model` and `model.embedding`, and the source of each of our tensors."""
    settings, place = model.settings, model.place
    choice(settings, "type", place, "transformer")
    for name in OFF:
        choice(settings, name, place, False)
    for name in ("lemma-dim-emb", "factors-dim-emb"):
        choice(settings, name, place, 0)
    choice(settings, "input-types", place, [], ["sequence"], ["sequence", "sequence"])
    choice(settings, "transformer-postprocess-emb", place, "d", "")
    size = number(settings, "dim-emb", place)
    norms = _norms(settings, place)
    every = bool(settings.get("tied-embeddings-all"))
    one = every or bool(settings.get("tied-embeddings-src"))
    tied = every or bool(settings.get("tied-embeddings"))
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


def _head(model: MarianModel, table: str) -> dict[str, TensorOrigin]:
    theirs, rows = "decoder_ff_logit_out", model.state.get(table or "decoder_ff_logit_out_Wt")
    found = tensor("head.weight", table or f"{theirs}_Wt")
    if not table and rows is None:  # before 1.8 it was not transposed
        found = tensor("head.weight", f"{theirs}_W", torch.Tensor.t)
        rows = model.state.get(f"{theirs}_W", torch.empty(0, 0)).t()
    if model.settings.get("output-omit-bias"):
        return found | zeros("head.bias", 0 if rows is None else len(rows))
    return found | row("head.bias", f"{theirs}_b")


def _side(
    model: MarianModel, side: str, size: int, norms: MarianNorms
) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """The encoder or the decoder."""
    settings, place, decodes = model.settings, model.place, side == "decoder"
    depth = layers(settings, f"{side[:3]}-depth", place, len(model.state))
    num_heads = number(settings, "transformer-heads", place)
    if not 1 <= num_heads <= size or size % num_heads:
        raise CheckpointError(
            f"{place}: transformer-heads: expected a divisor of dim-emb {size}, got {num_heads}; "
            "fetch it again"
        )
    hybrid = decodes and _is_recurrent(settings, place)
    origins: dict[str, TensorOrigin] = {
        f"{side}.positions.table.weight": TensorOrigin((), lambda: positions(size))
    }
    for layer, number_of in enumerate(_numbers(settings, depth, place) if decodes else range(1, depth + 1)):
        ours, theirs = f"{side}.blocks.{layer}", f"{side}_l{number_of}"
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
        origins |= linear(f"{ours}.network.first", network, "1") | linear(
            f"{ours}.network.second", network, "2"
        )
        origins |= norms.origins(f"{ours}.network_norm", f"{network}_ffn", f"{network}_ffn")
    if norms.place == "before":
        origins |= norms.named(f"{side}.last_norm", f"{side}_top")
    return _recipe(model, side, size, norms) | ({"use": "hybrid", "cell": "ssru"} if hybrid else {}), origins


def _recipe(model: MarianModel, side: str, size: int, norms: MarianNorms) -> dict[str, Any]:
    """The recipe's section of a side."""
    settings, place = model.settings, model.place

    def of_side(name: str, usual: int) -> Any:
        own = settings.get(f"transformer-decoder-{name}") if side == "decoder" else 0
        return own or number(settings, f"transformer-{name}", place, usual=usual)

    choice({"transformer-ffn-depth": of_side("ffn-depth", 2)}, "transformer-ffn-depth", place, 2)
    return {
        "use": "transformer",
        "size": size,
        "num_layers": number(settings, f"{side[:3]}-depth", place),
        "num_heads": number(settings, "transformer-heads", place),
        "inner": of_side("dim-ffn", 2048),
        "norm": norms.place,
        "norm_kind": norms.kind,
        "norm_epsilon": NORM_EPSILON,
        "activation": ACTIVATIONS[
            choice(settings, "transformer-ffn-activation", place, *ACTIVATIONS, usual="swish")
        ],
        "positions": "learned",  # loaded as a table: Marian's sinusoids are not those of the paper
        "max_length": LENGTH,
        "dropout": number(settings, "transformer-dropout", place, usual=0.1),
        "attention_dropout": number(settings, "transformer-dropout-attention", place, usual=0.0),
    }


def _is_recurrent(settings: dict[str, Any], place: str) -> bool:
    kind = choice(settings, "transformer-decoder-autoreg", place, "self-attention", "rnn")
    if kind == "rnn":
        choice(settings, "dec-cell", place, "ssru", usual="gru")
        choice(settings, "layer-normalization", place, False)
    return bool(kind == "rnn")


def _numbers(settings: dict[str, Any], depth: int, place: str) -> list[int]:
    """The number of each decoder layer's parameters, from 1; layers with the same number share them."""
    found = settings.get("transformer-tied-layers") or list(range(1, depth + 1))
    if not isinstance(found, list) or len(found) != depth or not all(type(one) is int for one in found):
        raise CheckpointError(
            f"{place}: transformer-tied-layers: expected {depth} numbers of layers, got {str(found)[:40]}"
        )
    return found


def _norms(settings: dict[str, Any], place: str) -> MarianNorms:
    """Where the norms are; in a model with norms before sublayers, also at the top.

    Before 1.10 Marian left out the norm of keys and values there.
    """
    steps = tuple(str(settings.get(f"transformer-{when}process") or "") for when in ("pre", "post"))
    top = str(settings.get("transformer-postprocess-top") or "")
    if steps not in ORDERS:
        known = ", ".join(f"'{before}' and '{after}'" for before, after in ORDERS)
        raise ConfigError(
            f"{place}: transformer-preprocess and transformer-postprocess: expected {known}, got "
            f"{steps[0][:20]!r} and {steps[1][:20]!r}, which Weft does not support"
        )
    norms = MarianNorms(*ORDERS[steps])
    wanted = steps[0] if norms.place == "before" else ""
    if top != wanted:
        raise ConfigError(
            f"{place}: transformer-postprocess-top: expected {wanted!r} with transformer-preprocess "
            f"{steps[0]!r}, got {top[:20]!r}, which Weft does not support"
        )
    version = re.match(r"v?(\d+)\.(\d+)", str(settings.get("version", "")))
    if norms.place == "before" and version and tuple(map(int, version.groups())) < (1, 10):
        raise ConfigError(
            f"{place}: version: expected 1.10 or later with transformer-preprocess {steps[0]!r}, got "
            f"{str(settings['version'])[:20]}, which did not normalise keys and values"
        )
    return norms


def _attention(ours: str, theirs: str, norms: MarianNorms) -> dict[str, TensorOrigin]:
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
