"""Sockeye 3: Transformers, and Transformers whose decoder has SSRUs in place of self-attention.

A model directory holds `config`, `params.best`, vocab.src.0.json and vocab.trg.0.json. Sockeye does not cut
words into pieces, so the user names the file of subwords. Read next: kit.py.

Source: Hieber et al. 2022, "Sockeye 3: fast neural machine translation with PyTorch"; sockeye 3.1.34.
"""

import math
from pathlib import Path
from typing import Any

from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.checkpoint import Origins, TensorOrigin, json_table
from weft.importing.kits.kit import CheckpointHints, Kit, ToolkitTranslator, assembled, beside, given_file
from weft.importing.kits.reading import ToolkitModel, ToolkitSettings, tensors, yaml
from weft.importing.kits.vocabularies import RunVocabulary, TokenList, special_of
from weft.importing.names import MappedPart, concatenated, joined, plain, tables, tensor, zeros
from weft.importing.writing import RunParts

SIDES = (("source", "encoder", "src"), ("target", "decoder", "trg"))
NORM_EPSILON = 1e-6
ORDERS = {("n", "dr"): "before", ("n", "r"): "before", ("", "drn"): "after", ("", "rn"): "after"}
"""Where the norms are, from the steps before and after a sublayer: n norm, d dropout, r residual."""

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish1": "silu"}
WITHOUT = {
    "dtype": ("float32", "float16", "bfloat16"),
    "lhuc": (False,),
    "neural_vocab_selection": (None, "none"),
}
WITHOUT_IN_SIDES = {"use_lhuc": (False,), "block_prepended_cross_attention": (False,)}


def _section(model: ToolkitModel, name: str) -> ToolkitSettings:
    return model.settings.table(f"config_{name}")


def origins_of(model: ToolkitModel) -> MappedPart:
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


def _side(model: ToolkitModel, side: str) -> MappedPart:
    """The encoder or the decoder."""
    section = _section(model, side)
    size, num_heads = section.number("model_size"), section.num_heads("attention_heads", "model_size")
    depth = section.layers("num_layers", len(model.state))
    kind = section.choice("decoder_type", "transformer", "ssru_transformer")
    hybrid = side == "decoder" and kind == "ssru_transformer"
    norm = section.order("preprocess_sequence", "postprocess_sequence", ORDERS)
    activation = _activation(section)
    section.choice("positional_embedding_type", "fixed", "learned")
    positions = f"{side}.pos_embedding.weight"
    origins = tensor(f"{side}.positions.table.weight", positions)
    for layer in range(depth):
        ours, theirs = f"{side}.blocks.{layer}", f"{side}.layers.{layer}"
        own, cell = ("autoregr_layer" if side == "decoder" else "self_attention"), "attention"
        if hybrid:
            cell = "cell"
            origins |= {
                f"{ours}.cell.weight_x": TensorOrigin(
                    (f"{theirs}.{own}.forget_gate.weight", f"{theirs}.{own}.linear.weight"), concatenated
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
    dropout = section.number("dropout_prepost", 0.0)
    settings = {
        "use": "hybrid" if hybrid else "transformer",
        "size": size,
        "num_layers": depth,
        "num_heads": num_heads,
        "inner": section.number("feed_forward_num_hidden"),
        "norm": norm,
        "norm_epsilon": NORM_EPSILON,
        "activation": activation,
        "positions": "learned",  # sinusoids too are tensors of the checkpoint
        "max_length": len(model.state.get(positions, ())),
        "dropout": dropout if "d" in str(section.get("postprocess_sequence")) else 0.0,
        "attention_dropout": section.number("dropout_attention", 0.0),
    }
    return settings | ({"cell": "ssru"} if hybrid else {}), origins


def _activation(section: ToolkitSettings) -> str:
    """The activation; of the gated ones, the one that is SwiGLU."""
    word = section.choice("act_type", *ACTIVATIONS)
    if not section.choice("use_glu", False, True):
        return ACTIVATIONS[word]
    section._replace(place=f"{section.place}: with use_glu").choice("act_type", "swish1")
    return "swiglu"


def _attention(ours: str, theirs: str, size: int, num_heads: int, *, cross: bool = False) -> Origins:
    """Attention without biases, whose keys and values are interleaved by heads in a file."""

    def separated(rows: Tensor) -> Tensor:
        each = rows.view(num_heads, 2, -1, rows.shape[1])  # [H, 2, K, D]
        return each.transpose(0, 1).reshape(rows.shape)

    query, rest, both = f"{ours}.query.weight", f"{ours}.key_value.weight", f"{theirs}.ff_in.weight"
    if cross:
        inputs = tensor(query, f"{theirs}.ff_q.weight") | tensor(rest, f"{theirs}.ff_kv.weight", separated)
    else:
        inputs = tensor(query, both, lambda rows: rows[:size])
        inputs |= tensor(rest, both, lambda rows: separated(rows[size:]))
    return {
        **inputs,
        **zeros(f"{ours}.query.bias", size),
        **zeros(f"{ours}.key_value.bias", 2 * size),
        **tensor(f"{ours}.out.weight", f"{theirs}.ff_out.weight"),
        **zeros(f"{ours}.out.bias", size),
    }


def _network(ours: str, theirs: str, *, gated: bool) -> Origins:
    first = [f"{theirs}.ff1"] + [f"{theirs}.linear"] * gated
    return joined(f"{ours}.first", *first) | plain(f"{ours}.second", f"{theirs}.ff2")


def _normed(ours: str, theirs: str, sublayer: str, norm: str) -> Origins:
    return plain(ours, f"{theirs}.{'pre' if norm == 'before' else 'post'}_{sublayer}.layer_norm")


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
    model = ToolkitModel(config, tensors(torchfile.read_torch_file(weights), "", str(weights)), str(weights))
    _check(model)
    found = [_vocabulary(given, folder, model, one) for one in (0, 1)]
    ours, origins = origins_of(model)
    used = {
        name: one
        for name, one in model.state.items()
        if not name.startswith(AUXILIARY) and "traced" not in name
    }
    decoding = {"search": "beam", "beam": 5, "length_penalty": 1.0, **_longest(model)}
    most = min(ours[side]["max_length"] for _, side, _ in SIDES)
    translator = ToolkitTranslator(
        ours, _embedding(model), origins, used, model.place, decoding, positions=most
    )
    return assembled(given, translator, found)


KIT = Kit("Sockeye", "a directory with config and params.best", recognises, read)


def _check(model: ToolkitModel) -> None:
    """Refuse what a recipe cannot say."""
    model.settings.check(WITHOUT)
    for side, part, _ in SIDES:
        _section(model, "data").choice(f"num_{side}_factors", 1)
        _section(model, f"embed_{side}").choice("num_factors", 1)
        _section(model, part).check(WITHOUT_IN_SIDES)


def _embedding(model: ToolkitModel) -> dict[str, Any]:
    """The recipe's settings of both tables."""
    size = _section(model, "encoder").number("model_size")
    for name in ("embed_source", "embed_target"):
        _section(model, name).choice("num_embed", size)
    _section(model, "decoder").choice("model_size", size)
    tied = model.settings.choice("weight_tying_type", "none", "src_trg", "trg_softmax", "src_trg_softmax")
    return {
        "size": size,
        "scaled": True,
        "dropout": _section(model, "embed_target").number("dropout", 0.0),
        "tied": tied.endswith("softmax"),
    }


def _longest(model: ToolkitModel) -> dict[str, Any]:
    """How long a translation may be: two standard deviations longer than in training."""
    data = _section(model, "data").part("data_statistics")
    found = [data.get(f"length_ratio_{name}") for name in ("mean", "std")]
    ratios = [one for one in found if isinstance(one, float) and math.isfinite(one) and 0 <= one < 100]
    if len(ratios) < 2:
        return {}
    return {"max_ratio": max(1.0, ratios[0] + 2 * ratios[1]), "max_extra": 1}


def _vocabulary(given: CheckpointHints, folder: Path, model: ToolkitModel, one: int) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1)."""
    side, _, short = SIDES[one]
    file = given_file(given.vocabulary, "vocabulary", one) or beside(folder, f"vocab.{short}.0.json")
    tokens = _tokens(file)
    size = model.settings.number(f"vocab_{side}_size")
    if len(tokens) != size or tuple(tokens[:4]) != SYMBOLS:
        raise CheckpointError(
            f"{file}: expected {size:,} tokens that begin with {' '.join(SYMBOLS)}, got {len(tokens):,}; "
            "does it belong to this model?"
        )
    special = special_of(tokens, SYMBOLS)
    subwords = given_file(given.subwords, "subwords", one)
    return TokenList(tokens, special, framed=one == 0).subwords(subwords, file)


def _tokens(file: Path) -> list[str]:
    """The tokens of a table of numbers by token."""
    content = json_table(file)
    if sorted(map(repr, content.values())) != sorted(map(repr, range(len(content)))):
        raise CheckpointError(f"{file}: expected a unique number from 0 for each token; fetch it again")
    return sorted(content, key=content.__getitem__)
