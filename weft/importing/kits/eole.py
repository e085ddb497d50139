"""Eole: Transformers in a directory with config.json, vocab.json and model.00.safetensors.

It continues OpenNMT-py, with other names. Read next: opennmt_transformer.py; kit.py.

Source: eole 0.6.4.
"""

from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import TensorOrigin, json_table, safe_tensors
from weft.importing.kits.assembling import ToolkitTranslator
from weft.importing.kits.kit import CheckpointHints, Kit
from weft.importing.kits.opennmt_run import COMPUTED, DECODING, run_of, tables, width
from weft.importing.kits.opennmt_transformer import SideNames, SideSettings, transformer
from weft.importing.kits.reading import choice, number, rate, table, tensors
from weft.importing.names import tensor
from weft.importing.writing import RunParts
from weft.nn.positions import Positions
from weft.nn.transformer import Activation

CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocab.json", "model.00.safetensors"
SPARE = (*COMPUTED, ".layer_scalar")  # which is used by Gemma alone
SYMBOLS = {"pad_token": "<blank>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu-tanh": "gelu_tanh",
    "silu": "silu",
    "gated-silu": "swiglu",
    "gated-gelu-tanh": "geglu",
}
POSITIONS: dict[str, Positions] = {
    "SinusoidalInterleaved": "sinusoidal",
    "SinusoidalConcat": "learned",
    "Learned": "learned",
    "Rotary": "rotary",
    "Alibi": "alibi",
}
LONGEST = 1024  # positions of SinusoidalConcat that are taken over
SIDES = {"encoder": "src_emb", "decoder": "tgt_emb"}
WITHOUT: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("encoder_layer_style", ("standard",)),
    ("final_encoder_layer_norm", (True,)),
    ("parallel_residual", (False,)),
    ("ffn_layernorm", (False,)),
    ("sliding_window", (0,)),
    ("relative_positions_buckets", (0,)),
    ("num_experts", (0,)),
    ("query_norm", (False,)),
    ("key_norm", (False,)),
    ("value_norm", (False,)),
    ("q_gating", (False,)),
    ("attn_scaling", (None,)),
    ("layer_types", (None,)),
)
"""Settings of a side, with the values that can be imported."""

ROTARY: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("scaling_type", (None,)),
    ("interleave_local", (0,)),
    ("tmax_index", (0,)),
    ("rotary_dim_global", (0,)),
    ("partial_rotary_factor", (0.0,)),
)


class EoleModel(NamedTuple):
    """What is read from a model directory of Eole."""

    settings: dict[str, Any]  # the section `model`
    training: dict[str, Any]
    vocabulary: dict[str, Any]
    tensors: dict[str, Tensor]
    place: str  # of config.json

    def side(self, name: str) -> dict[str, Any]:
        """The settings of a side, and those of the whole model where it has none of its own."""
        return {**self.settings, **table(self.settings, name, self.place)}

    def rate(self, name: str, usual: float) -> float:
        """A dropout rate, which may be a list with one for each stage of training."""
        return rate(self.training, name, self.place, usual)


def recognises(path: Path) -> bool:
    """Whether it is a directory with the three files."""
    return all((path / name).is_file() for name in (CONFIG, VOCABULARY, WEIGHTS))


def read(given: CheckpointHints) -> RunParts:
    """The run of a model directory."""
    model = _model(given.path)
    settings, place = model.settings, model.place
    choice(settings, "architecture", place, "transformer", "custom", usual="custom")
    choice(settings, "generator_function", place, "softmax")
    choice(settings, "add_estimator", place, False)
    for name in ("quant_layers", "lora_layers"):
        choice(model.training, name, place, [])
    embeddings = table(settings, "embeddings", place)
    choice(embeddings, "embedding_type", place, "standard")
    tied = bool(settings.get("share_decoder_embeddings", False))
    source, target = (f"{name}.embeddings.weight" for name in SIDES.values())
    origins = tables(model.tensors, source, target, place, tied=tied)
    sides: dict[str, Any] = {"smoothing": number(model.training, "label_smoothing", place, usual=0.0)}
    kind = embeddings.get("position_encoding_type", settings.get("position_encoding_type"))
    order = choice(
        {"position_encoding_type": kind},
        "position_encoding_type",
        place,
        *POSITIONS,
        usual="SinusoidalInterleaved",
    )
    for side in SIDES:
        choice(model.side(side), f"{side}_type", place, "transformer", usual="rnn")
        form, more = _form(model, side, order, embeddings)
        sides[side], blocks = transformer(model.tensors, side, _names(side), form, place)
        origins |= blocks | more
    embedding = {
        "size": width(model.tensors, target, source),
        "dropout": model.rate("dropout", 0.3),
        "tied": tied,
        "scaled": order.startswith("Sinusoidal") or bool(embeddings.get("normalize", False)),
    }
    translator = ToolkitTranslator(sides, embedding, origins, model.tensors, place, DECODING, SPARE)
    return run_of(given, [_tokens(model, "src"), _tokens(model, "tgt")], _symbols(model), translator)


KIT = Kit("Eole", f"a directory with {CONFIG}, {VOCABULARY} and {WEIGHTS}", recognises, read)


def _model(path: Path) -> EoleModel:
    config, vocabulary = json_table(path / CONFIG), json_table(path / VOCABULARY)
    found = tensors(safe_tensors(path / WEIGHTS), "", str(path / WEIGHTS))
    place = str(path / CONFIG)
    if list(path.glob("model.01.safetensors")):
        raise ConfigError(f"{path}: expected one file {WEIGHTS}, got several; save it again as one")
    training = config.get("training")
    training = training if isinstance(training, dict) else {}
    return EoleModel(table(config, "model", place), training, vocabulary, found, place)


def _names(side: str) -> SideNames:
    return SideNames(
        f"{side}.transformer_layers",
        f"{side}.layer_norm",
        "input_layernorm",
        "post_attention_layernorm",
        "precontext_layernorm",
        "mlp.gate_up_proj",
        "mlp.down_proj",
        "mlp.up_proj",
    )


def _form(
    model: EoleModel, side: str, order: str, embeddings: dict[str, Any]
) -> tuple[SideSettings, dict[str, TensorOrigin]]:
    """The settings of a side, and the source of its positions."""
    settings, place = model.side(side), model.place
    for name, known in WITHOUT:
        choice(settings, name, place, *known)
    rope = settings.get("rope_config")
    rope = rope if isinstance(rope, dict) else {}
    for name, known in ROTARY:
        choice(rope, name, place, *known)
    word = choice(settings, "mlp_activation_fn", place, *ACTIVATIONS)
    kind = choice(settings, "layer_norm", place, "standard", "standardFP32", "rms")
    origins: dict[str, TensorOrigin] = {}
    longest = LONGEST
    ours = f"{side}.positions.table.weight"
    if order == "Learned":
        choice(embeddings, "normalize", place, False)
        shift = int(number(embeddings, "position_shift", place, usual=0))
        theirs = f"{SIDES[side]}.pe.weight"
        longest = len(model.tensors.get(theirs, ())) - shift
        origins = tensor(ours, theirs, lambda rows: rows[shift:])
    elif order == "SinusoidalConcat":
        origins = tensor(ours, f"{SIDES[side]}.pe.pe", lambda waves: waves[:LONGEST, 0])
    form = SideSettings(
        num_heads=int(number(settings, "heads", place, usual=8)),
        norm_kind="rms" if kind == "rms" else "layer",
        norm_epsilon=float(number(settings, "norm_eps", place, usual=1e-5)),
        activation=ACTIVATIONS[word],
        positions=POSITIONS[order],
        dropout=model.rate("dropout", 0.3),
        attention_dropout=model.rate("attention_dropout", 0.1),
        rotary=int(number(rope, "rotary_dim", place, usual=0)),
        base=float(number(rope, "rotary_theta", place, usual=10000)),
        interleaved=bool(rope.get("rotary_interleave", True)),
        max_length=longest,
    )
    return form, origins


def _tokens(model: EoleModel, side: str) -> list[str]:
    found = model.vocabulary.get(side)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise CheckpointError(
            f"{model.place}: expected a list of tokens {side!r} in {VOCABULARY}, got "
            f"{type(found).__name__}; fetch it again"
        )
    return found


def _symbols(model: EoleModel) -> tuple[str, str, str, str]:
    """Padding, unknown, the start of a target, the end."""
    given = model.vocabulary.get("specials")
    given = given if isinstance(given, dict) else {}
    pad, unknown, begin, end = (str(given.get(name, usual)) for name, usual in SYMBOLS.items())
    return pad, unknown, str(model.vocabulary.get("decoder_start_token", begin)), end
