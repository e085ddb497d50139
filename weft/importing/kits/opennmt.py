"""OpenNMT-py 2.x and 3.x: Transformers, and recurrent translators with attention.

3.x can keep the tensors in a .safetensors beside the checkpoint; 2.x describes its vocabularies with objects,
of which only the data are read. Read next: opennmt_transformer.py, the parts of a Transformer.

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
from weft.importing.checkpoint import TensorOrigin, safe_tensors
from weft.importing.kits.assembling import ToolkitTranslator
from weft.importing.kits.kit import CheckpointHints, Kit
from weft.importing.kits.opennmt_run import COMPUTED, DECODING, run_of, tables, width
from weft.importing.kits.opennmt_transformer import SideNames, SideSettings, transformer
from weft.importing.kits.reading import choice, number, rate, table, tensors
from weft.importing.names import plain, recurrent, recurrent_encoder, tensor, zeros
from weft.importing.writing import RunParts
from weft.nn.positions import Positions
from weft.nn.transformer import Activation

PAD, UNKNOWN, START, END = "<blank>", "<unk>", "<s>", "</s>"


class OpenNMTModel(NamedTuple):
    """What is read from a checkpoint of OpenNMT-py."""

    options: dict[str, Any]
    tensors: dict[str, Tensor]
    tokens: tuple[list[str], list[str]]  # of the source and the target
    start: str  # the token before a target
    place: str

    @property
    def dropout(self) -> float:
        """The rate, or the first of a schedule."""
        return self.rate("dropout", 0.0)

    def rate(self, name: str, usual: float) -> float:
        """A dropout rate, which may be a list with one for each stage of training."""
        return rate(self.options, name, self.place, usual)


def checkpoint(path: Path) -> OpenNMTModel:
    """Read a checkpoint."""
    place = str(path)
    content = torchfile.read_torch_file(path)
    options = table(content, "opt", place)
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
SIDES = {
    "encoder": SideNames(
        "encoder.transformer",
        "encoder.layer_norm",
        "layer_norm",
        "feed_forward.layer_norm",
        "",
        "feed_forward.w_1",
        "feed_forward.w_2",
        "feed_forward.w_3",
    ),
    "decoder": SideNames(
        "decoder.transformer_layers",
        "decoder.layer_norm",
        "layer_norm_1",
        "feed_forward.layer_norm",
        "layer_norm_2",
        "feed_forward.w_1",
        "feed_forward.w_2",
        "feed_forward.w_3",
    ),
}
WITHOUT: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("model_task", ("seq2seq",)),
    ("data_task", ("seq2seq",)),
    ("model_type", ("text",)),
    ("generator_function", ("softmax",)),
    ("quant_layers", ([],)),
    ("lora_layers", ([],)),
    ("lora_embedding", (False,)),
)
"""Options of every model, with the values that can be imported."""

WITHOUT_IN_TRANSFORMERS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("self_attn_type", ("scaled-dot", "scaled-dot-flash")),
    ("copy_attn", (False,)),
    ("parallel_residual", (False,)),
    ("relative_positions_buckets", (0,)),
    ("num_experts", (0,)),
    ("sliding_window", (0,)),
)


def recognises(path: Path) -> bool:
    """Whether it is a file of torch.save with the names that OpenNMT-py writes."""
    if path.suffix != ".pt" or not path.is_file():
        return False
    program = torchfile.program(path, PROGRAM)
    return any(mark in program for mark in MARKS)


def read(given: CheckpointHints) -> RunParts:
    """The run of a checkpoint."""
    model = checkpoint(given.path)
    for name, known in WITHOUT:
        choice(model.options, name, model.place, *known)
    settings, embedding, origins = _parts(model)
    smoothing = number(model.options, "label_smoothing", model.place, usual=0.0)
    settings["smoothing"] = smoothing
    translator = ToolkitTranslator(
        settings, embedding, origins, model.tensors, model.place, DECODING, COMPUTED
    )
    return run_of(given, model.tokens, (PAD, UNKNOWN, model.start, END), translator)


KIT = Kit("OpenNMT-py", "a file such as model_step_100000.pt", recognises, read)


def _parts(model: OpenNMTModel) -> tuple[dict[str, Any], dict[str, Any], dict[str, TensorOrigin]]:
    """Encoder and decoder, the embedding, and the source of each tensor."""
    options, place = model.options, model.place
    tied = bool(options.get("share_decoder_embeddings", False))
    source, target = (TABLE.format(side) for side in SIDES)
    origins = tables(model.tensors, source, target, place, tied=tied)
    is_transformer = choice(options, "encoder_type", place, "transformer", "rnn", "brnn") == "transformer"
    choice(options, "decoder_type", place, "transformer" if is_transformer else "rnn")
    settings: dict[str, Any] = {}
    scaled = False
    if is_transformer:
        for name, known in WITHOUT_IN_TRANSFORMERS:
            choice(options, name, place, *known)
        form = _form(model)
        scaled = bool(options.get("position_encoding"))
        for side, names in SIDES.items():
            settings[side], more = transformer(model.tensors, side, names, form, place)
            origins |= more | _positions(form, side)
    else:
        choice(options, "position_encoding", place, False)
        for side in SIDES:
            make = encoder if side == "encoder" else decoder
            settings[side], more = make(model.tensors, options, model.dropout, place)
            origins |= more
    embedding = {
        "size": width(model.tensors, target, source),
        "dropout": model.dropout,
        "tied": tied,
        "scaled": scaled,
    }
    return settings, embedding, origins


def _positions(form: SideSettings, side: str) -> dict[str, TensorOrigin]:
    """The table of positions that Weft does not compute itself."""
    if form.positions != "learned":
        return {}
    name = POSITIONS.format(side)
    return tensor(f"{side}.positions.table.weight", name, lambda waves: waves[: form.max_length, 0])


def _form(model: OpenNMTModel) -> SideSettings:
    """The settings of a Transformer."""
    options, place = model.options, model.place
    word = choice(options, "pos_ffn_activation_fn", place, *ACTIVATIONS)
    kind = choice(options, "layer_norm", place, "standard", "rms")
    inside = choice(options, "max_relative_positions", place, 0, -1, -2)
    waves = bool(options.get("position_encoding"))
    if waves and inside:
        choice(options, "position_encoding", place, False)
    concatenated = "SinusoidalConcat"
    order = choice(options, "position_encoding_type", place, "SinusoidalInterleaved", concatenated)
    places: dict[int, Positions] = {0: "none", -1: "rotary", -2: "alibi"}
    if waves:
        places[0] = "learned" if order == concatenated else "sinusoidal"
    return SideSettings(
        num_heads=int(number(options, "heads", place, usual=8)),
        norm_kind="rms" if kind == "rms" else "layer",
        norm_epsilon=float(number(options, "norm_eps", place, usual=1e-6)),
        activation=ACTIVATIONS[word],
        positions=places[inside],
        dropout=model.dropout,
        attention_dropout=model.rate("attention_dropout", model.dropout),
        rotary=int(number(options, "rotary_dim", place, usual=0)),
        base=float(number(options, "rotary_theta", place, usual=10000)),
        interleaved=bool(options.get("rotary_interleave", True)),
        max_length=LONGEST,
    )


SCORES = {"general": "bilinear", "dot": "dot", "mlp": "additive"}


def encoder(
    tensors: Mapping[str, Tensor], options: dict[str, Any], dropout: float, place: str
) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """The recipe's settings of the encoder, and the source of each of its tensors."""
    kind = _kind(options, place)
    both = choice(options, "encoder_type", place, "rnn", "brnn") == "brnn"
    layers = _count(tensors, "encoder.rnn.weight_hh_l{}", place)
    settings = {
        "use": "recurrent",
        "cell": kind,
        "sizes": [tensors["encoder.rnn.weight_hh_l0"].shape[-1]] * layers,
        "bidirectional": both,
        "dropout": dropout,
    }
    return settings, recurrent_encoder("encoder.rnn", kind, layers, both=both)


def decoder(
    tensors: Mapping[str, Tensor], options: dict[str, Any], dropout: float, place: str
) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """The decoder's settings and the source of each of its tensors; the arguments are those of `encoder`."""
    kind = _kind(options, place)
    for name in ("copy_attn", "coverage_attn"):
        choice(options, name, place, False)
    choice(options, "context_gate", place, None)
    score = choice(options, "global_attention", place, "general", "dot", "mlp", "none")
    feeding = bool(choice(options, "input_feed", place, 1, 0))
    layers = _count(
        tensors, "decoder.rnn.layers.{}.weight_hh" if feeding else "decoder.rnn.weight_hh_l{}", place
    )
    origins: dict[str, TensorOrigin] = {}
    for layer in range(layers):
        theirs, end = (f"decoder.rnn.layers.{layer}", "") if feeding else ("decoder.rnn", f"_l{layer}")
        origins |= recurrent(f"decoder.stack.forwards.{layer}", theirs, kind, end)
    size = tensors["decoder.rnn.layers.0.weight_hh" if feeding else "decoder.rnn.weight_hh_l0"].shape[-1]
    settings = {
        "use": "recurrent",
        "cell": kind,
        "sizes": [size] * layers,
        "enters": "late" if score != "none" else "never",
        "input_feeding": feeding,
        "bridge": "layers",
        "dropout": dropout,
    }
    if choice(options, "bridge", place, False, True):
        settings["bridge"] = "joint"
        origins |= _bridge(tensors, kind)
    if score != "none":
        settings["score"] = SCORES[score]
        settings["weights"] = choice(options, "global_attention_function", place, "softmax", "sparsemax")
        settings |= {"readout_activation": "none"} if score == "mlp" else {}
        origins |= _attention(score, size)
    return settings, origins


def _kind(options: dict[str, Any], place: str) -> str:
    return str(choice(options, "rnn_type", place, "LSTM", "GRU")).lower()


def _count(tensors: Mapping[str, Tensor], pattern: str, place: str) -> int:
    """The number of layers."""
    count = 0
    while (found := tensors.get(pattern.format(count))) is not None and found.dim() == 2:
        count += 1
    if not count:
        raise CheckpointError(
            f"{place}: expected a matrix {pattern.format(0)}, got none; are these its options?"
        )
    return count


def _attention(score: str, size: int) -> dict[str, TensorOrigin]:
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


def _bridge(tensors: Mapping[str, Tensor], kind: str) -> dict[str, TensorOrigin]:
    """One map of all layers for h, another for c.

    With a bidirectional encoder, theirs maps each half of the states with the same weights.
    """
    found: dict[str, TensorOrigin] = {}
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
