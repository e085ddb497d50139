"""Eole: Transformers in a directory with config.json, vocab.json and model.00.safetensors.

It continues OpenNMT-py, with other names. Read next: opennmt_shared.py; kit.py.

Source: eole 0.6.4.
"""

from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Origins, json_table, safe_tensors
from weft.importing.kits.kit import CheckpointHints, Kit, ToolkitTranslator
from weft.importing.kits.opennmt_shared import (
    COMPUTED,
    DECODING,
    SideNames,
    SideSettings,
    TransformerSide,
    run_of,
    translator_tables,
    width,
)
from weft.importing.kits.reading import ToolkitSettings, tensors
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
WITHOUT: dict[str, tuple[Any, ...]] = {
    "encoder_layer_style": ("standard",),
    "final_encoder_layer_norm": (True,),
    "parallel_residual": (False,),
    "ffn_layernorm": (False,),
    "sliding_window": (0,),
    "relative_positions_buckets": (0,),
    "num_experts": (0,),
    "query_norm": (False,),
    "key_norm": (False,),
    "value_norm": (False,),
    "q_gating": (False,),
    "attn_scaling": (None,),
    "layer_types": (None,),
}
"""Settings of a side, with the values that can be imported."""

ROTARY: dict[str, tuple[Any, ...]] = {
    "scaling_type": (None,),
    "interleave_local": (0,),
    "tmax_index": (0,),
    "rotary_dim_global": (0,),
    "partial_rotary_factor": (0.0,),
}
WITHOUT_IN_TRAINING: dict[str, tuple[Any, ...]] = {"quant_layers": ([],), "lora_layers": ([],)}


class EoleModel(NamedTuple):
    """What is read from a model directory of Eole."""

    settings: ToolkitSettings  # the section `model`
    training: ToolkitSettings
    vocabulary: ToolkitSettings
    tensors: dict[str, Tensor]
    place: str  # of config.json

    def side(self, name: str) -> ToolkitSettings:
        """The settings of a side, and those of the whole model where it has none of its own."""
        return ToolkitSettings({**self.settings.values, **self.settings.table(name).values}, self.place)


def recognises(path: Path) -> bool:
    """Whether it is a directory with the three files."""
    return all((path / name).is_file() for name in (CONFIG, VOCABULARY, WEIGHTS))


def read(given: CheckpointHints) -> RunParts:
    """The run of a model directory."""
    model = _model(given.path)
    settings, place = model.settings, model.place
    settings.choice("architecture", "transformer", "custom", usual="custom")
    settings.choice("generator_function", "softmax")
    settings.choice("add_estimator", False)
    model.training.check(WITHOUT_IN_TRAINING)
    embeddings = settings.table("embeddings")
    embeddings.choice("embedding_type", "standard")
    tied = settings.flag("share_decoder_embeddings")
    source, target = (f"{name}.embeddings.weight" for name in SIDES.values())
    origins = translator_tables(model.tensors, source, target, place, tied=tied)
    sides: dict[str, Any] = {"smoothing": model.training.number("label_smoothing", 0.0)}
    every = ToolkitSettings({**settings.values, **embeddings.values}, place)
    order = every.choice("position_encoding_type", *POSITIONS)
    for side in SIDES:
        model.side(side).choice(f"{side}_type", "transformer", usual="rnn")
        form, more = _form(model, side, order, embeddings)
        sides[side], blocks = TransformerSide(model.tensors, side, _names(side), form, place).mapped()
        origins |= blocks | more
    embedding = {
        "size": width(model.tensors, target, source),
        "dropout": model.training.rate("dropout", 0.3),
        "tied": tied,
        "scaled": order.startswith("Sinusoidal") or embeddings.flag("normalize"),
    }
    translator = ToolkitTranslator(sides, embedding, origins, model.tensors, place, DECODING, SPARE)
    return run_of(given, [_tokens(model, "src"), _tokens(model, "tgt")], _symbols(model), translator)


KIT = Kit("Eole", f"a directory with {CONFIG}, {VOCABULARY} and {WEIGHTS}", recognises, read)


def _model(path: Path) -> EoleModel:
    place = str(path / CONFIG)
    config, vocabulary = (ToolkitSettings(json_table(path / name), place) for name in (CONFIG, VOCABULARY))
    found = tensors(safe_tensors(path / WEIGHTS), "", str(path / WEIGHTS))
    if list(path.glob("model.01.safetensors")):
        raise ConfigError(f"{path}: expected one file {WEIGHTS}, got several; save it again as one")
    return EoleModel(config.table("model"), config.part("training"), vocabulary, found, place)


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
    model: EoleModel, side: str, order: str, embeddings: ToolkitSettings
) -> tuple[SideSettings, Origins]:
    """The settings of a side, and the source of its positions."""
    settings, training = model.side(side), model.training
    settings.check(WITHOUT)
    rope = settings.part("rope_config")
    rope.check(ROTARY)
    word = settings.choice("mlp_activation_fn", *ACTIVATIONS)
    kind = settings.choice("layer_norm", "standard", "standardFP32", "rms")
    origins: Origins = {}
    longest = LONGEST
    ours = f"{side}.positions.table.weight"
    if order == "Learned":
        embeddings.choice("normalize", False)
        shift = int(embeddings.number("position_shift", 0))
        theirs = f"{SIDES[side]}.pe.weight"
        longest = len(model.tensors.get(theirs, ())) - shift
        origins = tensor(ours, theirs, lambda rows: rows[shift:])
    elif order == "SinusoidalConcat":
        origins = tensor(ours, f"{SIDES[side]}.pe.pe", lambda waves: waves[:LONGEST, 0])
    form = SideSettings(
        num_heads=int(settings.number("heads", 8)),
        norm_kind="rms" if kind == "rms" else "layer",
        norm_epsilon=float(settings.number("norm_eps", 1e-5)),
        activation=ACTIVATIONS[word],
        positions=POSITIONS[order],
        dropout=training.rate("dropout", 0.3),
        attention_dropout=training.rate("attention_dropout", 0.1),
        rotary=int(rope.number("rotary_dim", 0)),
        base=float(rope.number("rotary_theta", 10000)),
        interleaved=rope.flag("rotary_interleave", True),
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
    given = model.vocabulary.part("specials")
    pad, unknown, begin, end = (str(given.get(name, usual)) for name, usual in SYMBOLS.items())
    return pad, unknown, str(model.vocabulary.get("decoder_start_token", begin)), end
