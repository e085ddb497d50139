"""Sockeye 3: Transformers, and Transformers whose decoder has SSRUs in place of self-attention.

A model directory holds `config`, `params.best`, vocab.src.0.json and vocab.trg.0.json. Sockeye does not cut
words into pieces, so the user names the file of subwords. Read next: kit.py.

Source: Hieber et al. 2022, "Sockeye 3: fast neural machine translation with PyTorch"; sockeye 3.1.34.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.checkpoint import TensorOrigin, json_table
from weft.importing.kits import vocabularies
from weft.importing.kits.assembling import ToolkitTranslator, assembled
from weft.importing.kits.kit import CheckpointHints, Kit, beside, given_file
from weft.importing.kits.reading import choice, layers, number, table, tensors, yaml
from weft.importing.kits.vocabularies import RunVocabulary
from weft.importing.names import plain, tables, tensor, zeros
from weft.importing.writing import RunParts

SIDES = (("source", "encoder", "src"), ("target", "decoder", "trg"))
NORM_EPSILON = 1e-6
ORDERS = {("n", "dr"): "before", ("n", "r"): "before", ("", "drn"): "after", ("", "rn"): "after"}
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish1": "silu"}


class SockeyeModel(NamedTuple):
    """What is read from a model directory of Sockeye: its settings, its weights by name."""

    config: dict[str, Any]
    state: dict[str, Tensor]
    place: str  # of the settings
    weights: str

    def section(self, name: str) -> dict[str, Any]:
        """A table of the settings."""
        return table(self.config, f"config_{name}", self.place)


def origins_of(model: SockeyeModel) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """The recipe's section `model`, and the source of each of its tensors."""
    origins = {
        **tables(
            "embedding_source.embedding.weight", "embedding_target.embedding.weight", "output_layer.weight"
        ),
        **tensor("head.bias", "output_layer.bias"),
    }
    settings: dict[str, Any] = {}
    for _, side, _ in SIDES:
        settings[side], more = _side(model, side)
        origins |= more
    return settings, origins


def _side(model: SockeyeModel, side: str) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """The encoder or the decoder."""
    section, place = model.section(side), model.place
    size, num_heads = number(section, "model_size", place), number(section, "attention_heads", place)
    depth = layers(section, "num_layers", place, len(model.state))
    if not 1 <= num_heads <= size or size % num_heads:
        raise CheckpointError(
            f"{place}: attention_heads: expected a divisor of model_size {size}, got {num_heads}; "
            "does it belong to these parameters?"
        )
    kind = choice(section, "decoder_type", place, "transformer", "ssru_transformer")
    hybrid = side == "decoder" and kind == "ssru_transformer"
    norm, activation = _norm(section, place), _activation(section, place)
    choice(section, "positional_embedding_type", place, "fixed", "learned")
    positions = f"{side}.pos_embedding.weight"
    origins = tensor(f"{side}.positions.table.weight", positions)
    for layer in range(depth):
        ours, theirs = f"{side}.blocks.{layer}", f"{side}.layers.{layer}"
        own, cell = ("autoregr_layer" if side == "decoder" else "self_attention"), "attention"
        if hybrid:
            cell = "cell"
            origins |= {
                f"{ours}.cell.weight_x": TensorOrigin(
                    (f"{theirs}.{own}.forget_gate.weight", f"{theirs}.{own}.linear.weight"), _joined
                ),
                **tensor(f"{ours}.cell.bias", f"{theirs}.{own}.forget_gate.bias"),
            }
        else:
            origins |= _attention(f"{ours}.attention", f"{theirs}.{own}", size, num_heads)
        if side == "decoder":
            origins |= _attention(f"{ours}.look", f"{theirs}.enc_attention", size, num_heads, cross=True)
            origins |= _normed(f"{ours}.look_norm", theirs, "enc_attention", norm)
        origins |= _normed(f"{ours}.{cell}_norm", theirs, own, norm)
        origins |= _normed(f"{ours}.network_norm", theirs, "ff", norm)
        origins |= _network(f"{ours}.network", f"{theirs}.ff", gated=activation == "swiglu")
    if norm == "before":
        origins |= plain(f"{side}.last_norm", f"{side}.final_process.layer_norm")
    dropout = number(section, "dropout_prepost", place, usual=0.0)
    settings = {
        "use": "hybrid" if hybrid else "transformer",
        "size": size,
        "num_layers": depth,
        "num_heads": num_heads,
        "inner": number(section, "feed_forward_num_hidden", place),
        "norm": norm,
        "norm_epsilon": NORM_EPSILON,
        "activation": activation,
        "positions": "learned",  # sinusoids too are tensors of the checkpoint
        "max_length": len(model.state.get(positions, ())),
        "dropout": dropout if "d" in str(section.get("postprocess_sequence")) else 0.0,
        "attention_dropout": number(section, "dropout_attention", place, usual=0.0),
    }
    return settings | ({"cell": "ssru"} if hybrid else {}), origins


def _norm(section: dict[str, Any], place: str) -> str:
    """Where the norms are, from the steps before and after a sublayer: n norm, d dropout, r residual."""
    steps = tuple(str(section.get(f"{when}process_sequence") or "") for when in ("pre", "post"))
    if steps not in ORDERS:
        known = ", ".join(f"'{before}' and '{after}'" for before, after in ORDERS)
        raise ConfigError(
            f"{place}: preprocess_sequence and postprocess_sequence: expected {known}, got "
            f"{steps[0][:20]!r} and {steps[1][:20]!r}, which Weft does not support"
        )
    return ORDERS[steps]


def _activation(section: dict[str, Any], place: str) -> str:
    """The activation; of the gated ones, the one that is SwiGLU."""
    word = choice(section, "act_type", place, *ACTIVATIONS)
    if not choice(section, "use_glu", place, False, True):
        return ACTIVATIONS[word]
    choice(section, "act_type", f"{place}: with use_glu", "swish1")
    return "swiglu"


def _attention(
    ours: str, theirs: str, size: int, num_heads: int, *, cross: bool = False
) -> dict[str, TensorOrigin]:
    """Attention without biases, whose keys and values are interleaved by heads in a file."""

    def separated(rows: Tensor) -> Tensor:
        each = rows.view(num_heads, 2, -1, rows.shape[1])  # [H, 2, K, D]
        return each.transpose(0, 1).reshape(rows.shape)

    inputs = {
        f"{ours}.query.weight": TensorOrigin((f"{theirs}.ff_q.weight",), torch.clone),
        f"{ours}.key_value.weight": TensorOrigin((f"{theirs}.ff_kv.weight",), separated),
    }
    if not cross:
        inputs = {
            f"{ours}.query.weight": TensorOrigin((f"{theirs}.ff_in.weight",), lambda rows: rows[:size]),
            f"{ours}.key_value.weight": TensorOrigin(
                (f"{theirs}.ff_in.weight",), lambda rows: separated(rows[size:])
            ),
        }
    return {
        **inputs,
        **zeros(f"{ours}.query.bias", size),
        **zeros(f"{ours}.key_value.bias", 2 * size),
        **tensor(f"{ours}.out.weight", f"{theirs}.ff_out.weight"),
        **zeros(f"{ours}.out.bias", size),
    }


def _network(ours: str, theirs: str, *, gated: bool) -> dict[str, TensorOrigin]:
    if not gated:
        return {**plain(f"{ours}.first", f"{theirs}.ff1"), **plain(f"{ours}.second", f"{theirs}.ff2")}
    first = {
        f"{ours}.first.{part}": TensorOrigin((f"{theirs}.ff1.{part}", f"{theirs}.linear.{part}"), _joined)
        for part in ("weight", "bias")
    }
    return {**first, **plain(f"{ours}.second", f"{theirs}.ff2")}


def _normed(ours: str, theirs: str, sublayer: str, norm: str) -> dict[str, TensorOrigin]:
    return plain(ours, f"{theirs}.{'pre' if norm == 'before' else 'post'}_{sublayer}.layer_norm")


def _joined(*parts: Tensor) -> Tensor:
    return torch.cat(parts)


SETTINGS, BEST = "config", "params.best"
SYMBOLS = ("<pad>", "<unk>", "<s>", "</s>")
AUXILIARY = "length_ratio."
"""Tensors of an auxiliary task that predicts the length; the usual search does not use it."""


def recognises(path: Path) -> bool:
    """Whether it is a directory with Sockeye's `config`, or parameters in one."""
    folder = path.parent if path.is_file() and path.name.startswith("params.") else path
    try:
        with open(folder / SETTINGS, "rb") as file:
            return file.read(64).startswith(b"!ModelConfig")
    except OSError:
        return False


def read(given: CheckpointHints) -> RunParts:
    """The run of a model directory, or of one of its files of parameters."""
    folder = given.path.parent if given.path.is_file() else given.path
    weights = given.path if given.path.is_file() else beside(folder, BEST)
    config = yaml(folder / SETTINGS)
    if b"_packed_params" in torchfile.program(weights):
        raise ConfigError(
            f"{weights}: expected float weights, got int8; sockeye-quantize keeps the float ones as "
            "params.best.float32 and config.float32, so put these back"
        )
    model = SockeyeModel(
        config,
        tensors(torchfile.read_torch_file(weights), "", str(weights)),
        str(folder / SETTINGS),
        str(weights),
    )
    _check(model)
    found = [_vocabulary(given, folder, model, one) for one in (0, 1)]
    ours, origins = origins_of(model)
    used = {
        name: one
        for name, one in model.state.items()
        if not name.startswith(AUXILIARY) and "traced" not in name
    }
    translator = ToolkitTranslator(
        ours,
        _embedding(model),
        origins,
        used,
        model.weights,
        {"search": "beam", "beam": 5, "length_penalty": 1.0, **_longest(model)},
        positions=min(ours[side]["max_length"] for _, side, _ in SIDES),
    )
    return assembled(given, translator, found)


KIT = Kit("Sockeye", "a directory with config and params.best", recognises, read)


def _check(model: SockeyeModel) -> None:
    """Refuse what a recipe cannot say."""
    config, place = model.config, model.place
    data = model.section("data")
    choice(config, "dtype", place, "float32", "float16", "bfloat16")
    choice(config, "lhuc", place, False)
    choice(config, "neural_vocab_selection", place, None, "none")
    for side, part, _ in SIDES:
        choice(data, f"num_{side}_factors", place, 1)
        choice(model.section(f"embed_{side}"), "num_factors", place, 1)
        section = model.section(part)
        choice(section, "use_lhuc", place, False)
        choice(section, "block_prepended_cross_attention", place, False)


def _embedding(model: SockeyeModel) -> dict[str, Any]:
    """The recipe's settings of both tables."""
    section, place = model.section("embed_target"), model.place
    size = number(model.section("encoder"), "model_size", place)
    for name in ("embed_source", "embed_target"):
        choice(model.section(name), "num_embed", place, size)
    choice(model.section("decoder"), "model_size", place, size)
    tied = choice(
        model.config, "weight_tying_type", place, "none", "src_trg", "trg_softmax", "src_trg_softmax"
    )
    return {
        "size": size,
        "scaled": True,
        "dropout": number(section, "dropout", place, usual=0.0),
        "tied": tied.endswith("softmax"),
    }


def _longest(model: SockeyeModel) -> dict[str, Any]:
    """How long a translation may be: two standard deviations longer than in training."""
    data = model.section("data").get("data_statistics")
    found = [data.get(f"length_ratio_{name}") for name in ("mean", "std")] if isinstance(data, dict) else []
    ratios = [one for one in found if isinstance(one, float) and math.isfinite(one) and 0 <= one < 100]
    if len(ratios) < 2:
        return {}
    return {"max_ratio": max(1.0, ratios[0] + 2 * ratios[1]), "max_extra": 1}


def _vocabulary(given: CheckpointHints, folder: Path, model: SockeyeModel, one: int) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1)."""
    side, _, short = SIDES[one]
    file = given_file(given.vocabulary, "vocabulary", one) or beside(folder, f"vocab.{short}.0.json")
    tokens = _tokens(file)
    size = number(model.config, f"vocab_{side}_size", model.place)
    if len(tokens) != size or tuple(tokens[:4]) != SYMBOLS:
        raise CheckpointError(
            f"{file}: expected {size:,} tokens that begin with {' '.join(SYMBOLS)}, got {len(tokens):,}; "
            "does it belong to this model?"
        )
    special = vocabularies.special(tokens, SYMBOLS)
    subwords = given_file(given.subwords, "subwords", one)
    return vocabularies.from_subwords(tokens, special, subwords, framed=one == 0, place=file)


def _tokens(file: Path) -> list[str]:
    """The tokens of a table of numbers by token."""
    content = json_table(file)
    if sorted(map(repr, content.values())) != sorted(map(repr, range(len(content)))):
        raise CheckpointError(f"{file}: expected a unique number from 0 for each token; fetch it again")
    return sorted(content, key=content.__getitem__)
