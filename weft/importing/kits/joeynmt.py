"""JoeyNMT 1.x and 2.x: recurrent translators with attention, and Transformers.

A model directory holds config.yaml, checkpoints (best.ckpt), src_vocab.txt, trg_vocab.txt, and in 2.x the BPE
codes or the SentencePiece model. Read next: kit.py.

Source: Kreutzer, Bastings & Riezler 2019; joeynmt 2.3.0.
"""

from pathlib import Path
from typing import Any

import torch

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.kits.kit import CheckpointHints, Kit, ToolkitTranslator, assembled, beside, given_file
from weft.importing.kits.reading import ToolkitModel, ToolkitSettings, lines, tensors, yaml
from weft.importing.kits.vocabularies import JOINER, RunVocabulary, TokenList, normaliser, special_of
from weft.importing.names import (
    ACTIVATIONS,
    BlockNames,
    MappedPart,
    blocks,
    plain,
    recurrent,
    recurrent_part,
    tables,
    tensor,
    zeros,
)
from weft.importing.writing import RunParts

NORM_EPSILON = 1e-6


def _part(model: ToolkitModel, side: str) -> ToolkitSettings:
    return model.settings.table("model").table(side)


def origins_of(model: ToolkitModel) -> MappedPart:
    """The recipe's section `model`, and the source of each of its tensors.

    Tables that are tied are in the file under each of their names.
    """
    head = "decoder.output_layer.weight"
    origins = {
        **tables("src_embed.lut.weight", "trg_embed.lut.weight", head),
        **zeros("head.bias", len(model.state.get(head, ()))),
    }
    settings: dict[str, Any] = {"smoothing": model.settings.part("training").number("label_smoothing", 0.0)}
    for side, usual in (("encoder", "recurrent"), ("decoder", "transformer")):
        kind = _part(model, side).choice("type", "recurrent", "transformer", usual=usual)
        make = _transformer if kind == "transformer" else _encoder if side == "encoder" else _decoder
        settings[side], more = make(model, side)
        origins |= more
    return settings, origins


def embedding_of(model: ToolkitModel) -> dict[str, Any]:
    """The recipe's settings of both tables."""
    found = []
    for side in ("encoder", "decoder"):
        section = _part(model, side)
        settings, dropout = section.table("embeddings"), section.number("dropout", 0.0)
        found.append(
            {
                "size": settings.number("embedding_dim"),
                "scaled": settings.flag("scale"),
                "dropout": settings.number("dropout", dropout),
            }
        )
    for name in ("size", "scaled"):
        if found[0][name] != found[1][name]:
            raise ConfigError(
                f"{model.settings.place}: embeddings: expected the same {name} for encoder and decoder, "
                f"got {found[0][name]} and {found[1][name]}, which Weft does not support"
            )
    return found[1] | {"tied": model.settings.table("model").flag("tied_softmax")}


def _encoder(model: ToolkitModel, side: str) -> MappedPart:
    section, size, depth, kind = _recurrence(model, side)
    both, dropout = section.flag("bidirectional", True), section.number("dropout", 0.0)
    return recurrent_part("encoder.rnn", kind, size, depth, both=both, dropout=dropout)


def _decoder(model: ToolkitModel, side: str) -> MappedPart:
    """A recurrent decoder: late attention, a readout, and one map for the initial state of all layers."""
    section, size, depth, kind = _recurrence(model, side)
    section.choice("activation", "tanh")
    begins = section.choice("init_hidden", "bridge", "zero", "zeros", "last")
    readout = model.state.get("decoder.att_vector_layer.weight", torch.empty(0, 0))
    if begins == "last" and readout.shape[1] != 2 * size:
        raise ConfigError(
            f"{section.place}: init_hidden: expected bridge or zero, got last with an encoder of another "
            "size than the decoder, which Weft does not support"
        )
    score = section.choice("attention", "bahdanau", "luong")
    origins = plain("decoder.readout.0", "decoder.att_vector_layer")
    for layer in range(depth):
        origins |= recurrent(f"decoder.stack.forwards.{layer}", "decoder.rnn", kind, f"_l{layer}")
    if begins == "bridge":
        origins |= plain("decoder.bridge.maps.0", "decoder.bridge_layer")
    theirs, ours = "decoder.attention", "decoder.attention.score"
    if score == "luong":
        origins |= tensor(f"{ours}.weight.weight", f"{theirs}.key_layer.weight")
    else:
        for one, other in (("query", "query"), ("key", "key"), ("weight", "energy")):
            origins |= tensor(f"{ours}.{one}.weight", f"{theirs}.{other}_layer.weight")
        origins |= zeros(f"{ours}.query.bias", size)
    settings = {
        "use": "recurrent",
        "cell": kind,
        "sizes": [size] * depth,
        "score": "additive" if score == "bahdanau" else "bilinear",
        "enters": "late",
        "input_feeding": section.flag("input_feeding", True),
        "bridge": {"bridge": "shared", "last": "summary"}.get(begins, "nothing"),
        "dropout": section.number("hidden_dropout", 0.0),
    }
    return settings, origins


def _recurrence(model: ToolkitModel, side: str) -> tuple[ToolkitSettings, int, int, str]:
    """The section of a recurrent side, its size, its layers and its cell."""
    section = _part(model, side)
    size, depth = section.number("hidden_size", 1), section.layers("num_layers", len(model.state), 1)
    return section, size, depth, section.choice("rnn_type", "gru", "lstm")


def _transformer(model: ToolkitModel, side: str) -> MappedPart:
    """A side of a Transformer. Before 2.0 there was no setting for norms; all were before their sublayers."""
    section = _part(model, side)
    section.choice("alpha", 1.0)
    before = f"{side}.layer_norm.weight" in model.state
    depth = section.layers("num_layers", len(model.state))
    origins = plain(f"{side}.last_norm", f"{side}.layer_norm") if before else {}
    own, norm = ("src_src_att", "layer_norm") if side == "encoder" else ("trg_trg_att", "x_layer_norm")
    names = BlockNames(
        _heads(own),
        norm,
        "feed_forward.pwff_layer.0",
        "feed_forward.pwff_layer.3",
        "feed_forward.layer_norm",
        _heads("src_trg_att"),
        "dec_layer_norm",
    )
    origins |= blocks(f"{side}.blocks", f"{side}.layers", depth, names, looks=side == "decoder")
    dropout = section.number("dropout", 0.1)
    settings = {
        "use": "transformer",
        "size": section.number("hidden_size"),
        "num_layers": depth,
        "num_heads": section.number("num_heads"),
        "inner": section.number("ff_size"),
        "norm": "before" if before else "after",
        "norm_epsilon": NORM_EPSILON,
        "activation": ACTIVATIONS[section.choice("activation", "relu", "gelu", "swish")],
        "dropout": dropout,
        "attention_dropout": dropout,
    }
    return settings, origins


def _heads(attention: str) -> list[str]:
    return [f"{attention}.{name}_layer" for name in ("q", "k", "v", "output")]


CHECKPOINTS = ("best.ckpt", "avg_best.ckpt", "latest.ckpt")
SIDES = ("src", "trg")
SYMBOLS = (("pad", "<pad>"), ("unk", "<unk>"), ("bos", "<s>"), ("eos", "</s>"))
QUOTES = (("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u200b", ""))
NORMALISE = (
    {"type": "NFKC"},
    *({"type": "Replace", "pattern": {"String": old}, "content": new} for old, new in QUOTES),
    {"type": "Replace", "pattern": {"Regex": "[ \u3000]+"}, "content": " "},
    *({"type": "Replace", "pattern": {"String": f" {mark}"}, "content": mark} for mark in "?!,.:"),
    {"type": "Strip", "strip_left": True, "strip_right": True},
)
COMPUTED = (".pe.pe",)  # tables that the model computes


def recognises(path: Path) -> bool:
    """Whether it is a directory with config.yaml and a checkpoint, or such a checkpoint."""
    if path.suffix == ".ckpt":
        return (path.parent / "config.yaml").is_file()
    return (path / "config.yaml").is_file() and _newest(path) is not None


def read(given: CheckpointHints) -> RunParts:
    """The run of a model directory, or of one of its checkpoints."""
    folder = given.path.parent if given.path.suffix == ".ckpt" else given.path
    weights = given.path if given.path.suffix == ".ckpt" else _newest(folder)
    assert weights is not None
    config = yaml(folder / "config.yaml")
    state = tensors(torchfile.read_torch_file(weights), "model_state", str(weights))
    model = ToolkitModel(config, state, str(weights))
    data = config.table("data")
    found = [_vocabulary(given, folder, data, one) for one in (0, 1)]
    ours, origins = origins_of(model)
    decoding = _decoding(config.part("testing"))
    translator = ToolkitTranslator(
        ours, embedding_of(model), origins, state, model.place, decoding, spare=COMPUTED
    )
    source, target = (_side(data, short).get("lang", data.get(short)) for short in SIDES)
    return assembled(given, translator, found, (source, target))


KIT = Kit("JoeyNMT", "a directory with config.yaml and best.ckpt", recognises, read)


def _newest(folder: Path) -> Path | None:
    """The best checkpoint, or the one of the most updates."""
    named = [folder / name for name in CHECKPOINTS if (folder / name).is_file()]
    steps = sorted(
        (file for file in folder.glob("*.ckpt") if file.stem.isdigit()), key=lambda one: int(one.stem)
    )
    return (named + steps[::-1] + [None])[0]


def _side(data: ToolkitSettings, short: str) -> ToolkitSettings:
    """What the section `data` says about one side; before 2.0 it says it for both."""
    return data.table(short) if isinstance(data.get(short), dict) else data


def _vocabulary(given: CheckpointHints, folder: Path, data: ToolkitSettings, one: int) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1)."""
    short = SIDES[one]
    file = given_file(given.vocabulary, "vocabulary", one) or beside(folder, f"{short}_vocab.txt")
    tokens = lines(file)
    section, names = _side(data, short), data.part("special_symbols")
    symbols = [str(names.get(f"{name}_token", usual)) for name, usual in SYMBOLS]
    special = special_of(tokens, symbols)
    if special.unknown < 0 or special.end < 0:
        raise CheckpointError(
            f"{file}: expected {' and '.join(symbols)} in it; is it a vocabulary of JoeyNMT?"
        )
    options = section.part("tokenizer_cfg")
    options.choice("pretokenizer", "none")
    names.choice("lang_tags", [])
    level = section.choice("level", "word", "char", "bpe")
    lowercase, normalise = section.flag("lowercase"), section.flag("normalize")
    found = TokenList(
        tokens,
        special,
        framed=one == 0,
        normaliser=normaliser(lowercase=lowercase, steps=NORMALISE if normalise else ()),
    )
    if level != "bpe":
        return found.words(characters=level == "char")
    named = ToolkitSettings({"type": section.get("tokenizer_type", section.get("bpe_type"))}, data.place)
    usual = "sentencepiece" if options.values else "subword-nmt"
    kind = named.choice("type", "sentencepiece", "subword-nmt", usual=usual)
    subwords = given_file(given.subwords, "subwords", one)
    if subwords is None:
        name = options.get("model_file" if kind == "sentencepiece" else "codes")
        if not isinstance(name, str):
            raise ConfigError(
                f"{data.place}: names no BPE codes for {short} (JoeyNMT before 2.0 never does); give "
                "them with --subwords FILE"
            )
        subwords = beside(folder, Path(name).name)
    if kind == "sentencepiece":
        if normalise:
            section.choice("normalize", False)
        return found.pieces(subwords, lowercase=lowercase, restricted=True)
    return found.codes(subwords, joiner=str(options.get("separator", JOINER)))


def _decoding(found: ToolkitSettings) -> dict[str, Any]:
    """The search of the section `testing`."""
    beam, alpha = found.get("beam_size", 1), found.get("beam_alpha", found.get("alpha", -1))
    least = found.get("min_output_length", 1)  # theirs is 1 by default, ours 0
    longer = {"min_length": least} if isinstance(least, int) and least > 1 else {}
    if not isinstance(beam, int) or beam < 2:
        return {"search": "greedy"} | longer
    alpha = float(alpha) if isinstance(alpha, int | float) and alpha > 0 else 0.0
    return {"search": "beam", "beam": beam, "length_penalty": alpha, "normalisation": "gnmt"} | longer
