"""OpenNMT-py 2.x and 3.x: Transformers, and recurrent translators with attention.

Read next: opennmt_checkpoint.py, the file; opennmt_transformer.py and opennmt_recurrent.py, the parts.

Source: Klein et al. 2017; OpenNMT-py 2.3.0 and 3.5.1.
"""

from pathlib import Path
from typing import Any

from weft.importing import torchfile
from weft.importing.checkpoint import TensorOrigin
from weft.importing.kits import opennmt_recurrent
from weft.importing.kits.kit import CheckpointHints, Kit
from weft.importing.kits.opennmt_checkpoint import END, PAD, UNKNOWN, OpenNMTModel, checkpoint
from weft.importing.kits.opennmt_run import ModelVocabularies, run_of, tables, width
from weft.importing.kits.opennmt_transformer import SideNames, SideSettings, transformer
from weft.importing.kits.reading import choice, number
from weft.importing.names import tensor
from weft.importing.writing import RunParts
from weft.nn.positions import Positions
from weft.nn.transformer import Activation

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
    """The run of a checkpoint.

    Raises:
        CheckpointError: a file is missing or damaged, or tensors are.
        ConfigError: an option that Weft's parts cannot express.
    """
    model = checkpoint(given.path)
    for name, known in WITHOUT:
        choice(model.options, name, model.place, *known)
    settings, embedding, origins = _parts(model)
    smoothing = number(model.options, "label_smoothing", model.place, usual=0.0)
    texts = ModelVocabularies(model.tokens, (PAD, UNKNOWN, model.start, END))
    return run_of(
        given, texts, model.tensors, (settings | {"smoothing": smoothing}, embedding, origins), model.place
    )


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
            make = opennmt_recurrent.encoder if side == "encoder" else opennmt_recurrent.decoder
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
