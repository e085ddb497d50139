"""OpenNMT-py 2.x and 3.x: Transformers, and recurrent translators with attention.

3.x can keep the tensors in a .safetensors beside the checkpoint; 2.x describes its vocabularies with objects,
of which only the data are read. Read next: opennmt_shared.py, the parts of a Transformer.

Source: Klein et al. 2017; OpenNMT-py 2.3.0 and 3.5.1.
"""

import glob
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.checkpoint import Origins, safe_tensors
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
from weft.importing.kits.reading import ToolkitSettings, table, tensors
from weft.importing.names import MappedPart, plain, recurrent, recurrent_part, tensor, zeros
from weft.importing.writing import RunParts
from weft.nn.positions import Positions
from weft.nn.transformer import Activation

PAD, UNKNOWN, START, END = "<blank>", "<unk>", "<s>", "</s>"


class OpenNMTModel(NamedTuple):
    """What is read from a checkpoint of OpenNMT-py."""

    options: ToolkitSettings
    tensors: dict[str, Tensor]
    tokens: tuple[list[str], list[str]]  # of the source and the target
    start: str  # the token before a target
    place: str

    @property
    def dropout(self) -> float:
        """The rate, or the first of a schedule."""
        return self.options.rate("dropout", 0.0)


def checkpoint(path: Path) -> OpenNMTModel:
    """Read a checkpoint."""
    place = str(path)
    content = torchfile.read_torch_file(path)
    options = ToolkitSettings(table(content, "opt", place), place)
    vocabulary = table(content, "vocab", place)
    if "model" in content:
        found = tensors(content, "model", place)
        head = tensors(content, "generator", place)
        found |= {f"generator.{name.removeprefix('0.')}": one for name, one in head.items()}
    else:
        found = _beside(path)
    if vocabulary.get("src_feats"):
        raise ConfigError(
            f"{place}: src_feats: expected none, got features of source words, which Weft does not support"
        )
    tokens = _tokens(vocabulary, "src", place), _tokens(vocabulary, "tgt", place)
    renamed = {_renamed(name): one for name, one in found.items()}
    return OpenNMTModel(options, renamed, tokens, str(vocabulary.get("decoder_start_token", START)), place)


def _beside(path: Path) -> dict[str, Tensor]:
    """The tensors of the files beside a checkpoint: its name and .safetensors, or .00.safetensors and so on.

    OpenNMT-py writes the first and reads the second.
    """
    files = [path.with_suffix(".safetensors")]
    if not files[0].is_file():
        numbered = sorted(path.parent.glob(f"{glob.escape(path.stem)}.*.safetensors"))
        files = numbered or files
    found: dict[str, Tensor] = {}
    for file in files:
        found |= tensors(safe_tensors(file), "", str(file))
    return found


def _renamed(name: str) -> str:
    """A tensor's name in 2.x and 3.x; before, norms had their own names for weights and biases."""
    return re.sub(r"\.b_2$", ".bias", re.sub(r"\.a_2$", ".weight", name))


def _tokens(vocabulary: dict[str, Any], side: str, place: str) -> list[str]:
    """The tokens of a side; in 2.x they are part of a description of how to read a text."""
    found = vocabulary.get(side)
    if isinstance(found, dict):
        fields = found.get("fields")
        if isinstance(fields, list) and len(fields) > 1:
            raise ConfigError(f"{place}: expected words without features, which Weft lacks, got some")
        try:
            found = fields[0][1]["vocab"]["itos"]  # type: ignore[index]
        except (TypeError, KeyError, IndexError):
            found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise CheckpointError(
            f"{place}: expected a list of tokens in vocab.{side}, got {type(found).__name__}; fetch it again"
        )
    return found


PROGRAM = 16 << 20  # bytes in which the names stand by which a checkpoint is recognised
MARKS = (b"embeddings.make_embedding.emb_luts", b"decoder_start_token")
TABLE = "{}.embeddings.make_embedding.emb_luts.0.weight"
POSITIONS = "{}.embeddings.make_embedding.pe.pe"
LONGEST = 1024  # learned positions that are taken over
ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gelu": "gelu", "silu": "swiglu"}
ENCODER = SideNames(
    "encoder.transformer",
    "encoder.layer_norm",
    "layer_norm",
    "feed_forward.layer_norm",
    "",
    "feed_forward.w_1",
    "feed_forward.w_2",
    "feed_forward.w_3",
)
DECODER = ENCODER._replace(
    layers="decoder.transformer_layers",
    last_norm="decoder.layer_norm",
    attention_norm="layer_norm_1",
    look_norm="layer_norm_2",
)
SIDES = {"encoder": ENCODER, "decoder": DECODER}
WITHOUT: dict[str, tuple[Any, ...]] = {
    "model_task": ("seq2seq",),
    "data_task": ("seq2seq",),
    "model_type": ("text",),
    "generator_function": ("softmax",),
    "quant_layers": ([],),
    "lora_layers": ([],),
    "lora_embedding": (False,),
}
"""Options of every model, with the values that can be imported."""

WITHOUT_IN_TRANSFORMERS: dict[str, tuple[Any, ...]] = {
    "self_attn_type": ("scaled-dot", "scaled-dot-flash"),
    "copy_attn": (False,),
    "parallel_residual": (False,),
    "relative_positions_buckets": (0,),
    "num_experts": (0,),
    "sliding_window": (0,),
}
WITHOUT_IN_DECODERS = {"copy_attn": (False,), "coverage_attn": (False,), "context_gate": (None,)}


def recognises(path: Path) -> bool:
    """Whether it is a file of torch.save with the names that OpenNMT-py writes."""
    if path.suffix != ".pt" or not path.is_file():
        return False
    program = torchfile.program(path, PROGRAM)
    return any(mark in program for mark in MARKS)


def read(given: CheckpointHints) -> RunParts:
    """The run of a checkpoint."""
    model = checkpoint(given.path)
    model.options.check(WITHOUT)
    settings, embedding, origins = _parts(model)
    settings["smoothing"] = model.options.number("label_smoothing", 0.0)
    translator = ToolkitTranslator(
        settings, embedding, origins, model.tensors, model.place, DECODING, COMPUTED
    )
    return run_of(given, model.tokens, (PAD, UNKNOWN, model.start, END), translator)


KIT = Kit("OpenNMT-py", "a file such as model_step_100000.pt", recognises, read)


def _parts(model: OpenNMTModel) -> tuple[dict[str, Any], dict[str, Any], Origins]:
    """Encoder and decoder, the embedding, and the source of each tensor."""
    options = model.options
    tied = options.flag("share_decoder_embeddings")
    source, target = (TABLE.format(side) for side in SIDES)
    origins = translator_tables(model.tensors, source, target, model.place, tied=tied)
    is_transformer = options.choice("encoder_type", "transformer", "rnn", "brnn") == "transformer"
    options.choice("decoder_type", "transformer" if is_transformer else "rnn")
    settings: dict[str, Any] = {}
    scaled = False
    if is_transformer:
        options.check(WITHOUT_IN_TRANSFORMERS)
        form = _form(model)
        scaled = options.flag("position_encoding")
        for side, names in SIDES.items():
            settings[side], more = TransformerSide(model.tensors, side, names, form, model.place).mapped()
            origins |= more | _positions(form, side)
    else:
        options.choice("position_encoding", False)
        settings["encoder"], read = encoder(model)
        settings["decoder"], written = decoder(model)
        origins |= read | written
    embedding = {
        "size": width(model.tensors, target, source),
        "dropout": model.dropout,
        "tied": tied,
        "scaled": scaled,
    }
    return settings, embedding, origins


def _positions(form: SideSettings, side: str) -> Origins:
    """The table of positions that Weft does not compute itself."""
    if form.positions != "learned":
        return {}
    name = POSITIONS.format(side)
    return tensor(f"{side}.positions.table.weight", name, lambda waves: waves[: form.max_length, 0])


def _form(model: OpenNMTModel) -> SideSettings:
    """The settings of a Transformer."""
    options = model.options
    word = options.choice("pos_ffn_activation_fn", *ACTIVATIONS)
    kind = options.choice("layer_norm", "standard", "rms")
    inside = options.choice("max_relative_positions", 0, -1, -2)
    waves = options.flag("position_encoding")
    if waves and inside:
        options.choice("position_encoding", False)
    concatenated = "SinusoidalConcat"
    order = options.choice("position_encoding_type", "SinusoidalInterleaved", concatenated)
    places: dict[int, Positions] = {0: "none", -1: "rotary", -2: "alibi"}
    if waves:
        places[0] = "learned" if order == concatenated else "sinusoidal"
    return SideSettings(
        num_heads=int(options.number("heads", 8)),
        norm_kind="rms" if kind == "rms" else "layer",
        norm_epsilon=float(options.number("norm_eps", 1e-6)),
        activation=ACTIVATIONS[word],
        positions=places[inside],
        dropout=model.dropout,
        attention_dropout=options.rate("attention_dropout", model.dropout),
        rotary=int(options.number("rotary_dim", 0)),
        base=float(options.number("rotary_theta", 10000)),
        interleaved=options.flag("rotary_interleave", True),
        max_length=LONGEST,
    )


SCORES = {"general": "bilinear", "dot": "dot", "mlp": "additive"}


def encoder(model: OpenNMTModel) -> MappedPart:
    """A recurrent encoder."""
    kind = _kind(model.options)
    both = model.options.choice("encoder_type", "rnn", "brnn") == "brnn"
    layers = _count(model, "encoder.rnn.weight_hh_l{}")
    size = model.tensors["encoder.rnn.weight_hh_l0"].shape[-1]
    return recurrent_part("encoder.rnn", kind, size, layers, both=both, dropout=model.dropout)


def decoder(model: OpenNMTModel) -> MappedPart:
    """A recurrent decoder."""
    options, kind = model.options, _kind(model.options)
    options.check(WITHOUT_IN_DECODERS)
    score = options.choice("global_attention", "general", "dot", "mlp", "none")
    feeding = bool(options.choice("input_feed", 1, 0))
    weights = "decoder.rnn.layers.{}.weight_hh" if feeding else "decoder.rnn.weight_hh_l{}"
    layers = _count(model, weights)
    origins: Origins = {}
    for layer in range(layers):
        theirs, end = (f"decoder.rnn.layers.{layer}", "") if feeding else ("decoder.rnn", f"_l{layer}")
        origins |= recurrent(f"decoder.stack.forwards.{layer}", theirs, kind, end)
    size = model.tensors[weights.format(0)].shape[-1]
    settings = {
        "use": "recurrent",
        "cell": kind,
        "sizes": [size] * layers,
        "enters": "late" if score != "none" else "never",
        "input_feeding": feeding,
        "bridge": "layers",
        "dropout": model.dropout,
    }
    if options.choice("bridge", False, True):
        settings["bridge"] = "joint"
        origins |= _bridge(model.tensors, kind)
    if score != "none":
        settings["score"] = SCORES[score]
        settings["weights"] = options.choice("global_attention_function", "softmax", "sparsemax")
        settings |= {"readout_activation": "none"} if score == "mlp" else {}
        origins |= _attention(score, size)
    return settings, origins


def _kind(options: ToolkitSettings) -> str:
    return str(options.choice("rnn_type", "LSTM", "GRU")).lower()


def _count(model: OpenNMTModel, pattern: str) -> int:
    """The number of layers."""
    count = 0
    while (found := model.tensors.get(pattern.format(count))) is not None and found.dim() == 2:
        count += 1
    if not count:
        raise CheckpointError(
            f"{model.place}: expected a matrix {pattern.format(0)}, got none; are these its options?"
        )
    return count


def _attention(score: str, size: int) -> Origins:
    """The score, and the readout W [c; h], in which ours has h first."""
    theirs, ours = "decoder.attn", "decoder.attention.score"
    found = tensor("decoder.readout.0.weight", f"{theirs}.linear_out.weight", _swapped)
    if score == "mlp":
        return found | {
            **tensor("decoder.readout.0.bias", f"{theirs}.linear_out.bias"),
            **plain(f"{ours}.query", f"{theirs}.linear_query"),
            **tensor(f"{ours}.key.weight", f"{theirs}.linear_context.weight"),
            **tensor(f"{ours}.weight.weight", f"{theirs}.v.weight"),
        }
    found |= zeros("decoder.readout.0.bias", size)
    if score == "general":  # theirs multiplies the query, ours the keys
        found |= tensor(f"{ours}.weight.weight", f"{theirs}.linear_in.weight", lambda weight: weight.mT)
    return found


def _bridge(tensors: Mapping[str, Tensor], kind: str) -> Origins:
    """One map of all layers for h, another for c.

    With a bidirectional encoder, theirs maps each half of the states with the same weights.
    """
    found: Origins = {}
    both = "encoder.rnn.weight_hh_l0_reverse" in tensors

    def weight(matrix: Tensor) -> Tensor:
        return torch.block_diag(matrix, matrix) if both else matrix

    def bias(vector: Tensor) -> Tensor:
        return torch.cat([vector, vector]) if both else vector

    for index in range(2 if kind == "lstm" else 1):
        ours, theirs = f"decoder.bridge.maps.{index}", f"encoder.bridge.{index}"
        found |= tensor(f"{ours}.weight", f"{theirs}.weight", weight)
        found |= tensor(f"{ours}.bias", f"{theirs}.bias", bias)
    return found


def _swapped(weight: Tensor) -> Tensor:
    return torch.cat(weight.chunk(2, 1)[::-1], 1)
